"""Which task an executor takes, and whom it takes over."""

from __future__ import annotations

from swarmtui.agents.context import awaited
from swarmtui.agents.crowd import Busy
from swarmtui.agents.executor import Holders, choose_work
from swarmtui.plan.ops import Policy, Step
from swarmtui.plan.state import Plan, State, Task

from . import making

WRITE = ("write",)


def never(plan: Plan, task: Task) -> bool:
    return False


def ready() -> tuple[Plan, list[Task]]:
    plan = making.plan(Policy(lease_s=60))
    children = making.accept(plan, making.draft(plan, titles=[f"Step {n}" for n in range(6)]))
    return plan, children


def test_executors_take_ready_tasks_in_different_orders() -> None:
    plan, children = ready()
    pairs = [(plan, task) for task in children]
    taken = {me: choose_work(pairs, me, WRITE, never) for me in "abcdefgh"}
    assert all(work is not None and work.how == "claim" for work in taken.values())
    assert len({work.task.id for work in taken.values() if work}) > 2


def test_skills_have_to_fit_but_anybody_merges() -> None:
    plan, (task, *_) = ready()
    task.step = Step(title="Draw", needs="draw")
    assert choose_work([(plan, task)], "me", WRITE, never) is None
    assert choose_work([(plan, task)], "me", ("draw",), never) is not None
    task.leaf = False
    assert choose_work([(plan, task)], "me", WRITE, never) is not None


def test_what_others_wait_for_goes_first() -> None:
    plan, children = ready()
    children[5].after = (children[3].id,)
    assert awaited(plan, children[3])
    for me in "abcdef":
        work = choose_work([(plan, task) for task in children[:5]], me, WRITE, never)
        assert work is not None
        assert work.task is children[3]


def test_an_own_open_claim_is_resumed_before_all_else() -> None:
    plan, children = ready()
    making.claim(children[2], "me")
    work = choose_work([(plan, task) for task in children], "me", WRITE, never)
    assert work is not None
    assert (work.how, work.task) == ("resume", children[2])


def test_a_claim_after_a_release_follows_the_last_link() -> None:
    plan, (task, *_) = ready()
    last = making.claim(task, "other")
    task.holder, task.state = None, State.READY
    work = choose_work([(plan, task)], "me", WRITE, never)
    assert work is not None
    assert (work.how, work.prior) == ("claim", last.id)


def test_a_held_task_is_left_alone_until_it_is_free() -> None:
    plan, (task, *_) = ready()
    held = making.claim(task, "other")
    assert choose_work([(plan, task)], "me", WRITE, never) is None
    work = choose_work([(plan, task)], "me", WRITE, lambda plan, task: True)
    assert work is not None
    assert (work.how, work.prior) == ("take over", held.id)


def test_silence_counts_from_the_last_sign_of_work_by_my_own_clock() -> None:
    plan, (task, *_) = ready()
    making.claim(task, "other")
    holders = Holders()
    holders.look([(plan, task)], "me", making.crowd(), 1000.0, 10)
    assert holders.free_at(plan, task) == 1060.0
    working = making.crowd({"other": Busy("working", task.title, 1030.0)})
    holders.look([(plan, task)], "me", working, 1035.0, 10)
    assert holders.free_at(plan, task) == 1090.0


def test_to_be_alive_is_not_to_work() -> None:
    plan, (task, *_) = ready()
    making.claim(task, "other")
    holders = Holders()
    for now in (0.0, 30.0, 59.0):
        idle = making.crowd({"other": Busy("idle", "", now)}, executor=["other"])
        holders.look([(plan, task)], "me", idle, now, 10)
    assert holders.free_at(plan, task) == 60.0


def test_a_new_holder_gets_a_lease_of_its_own() -> None:
    plan, (task, *_) = ready()
    first = making.claim(task, "a")
    holders = Holders()
    holders.look([(plan, task)], "me", making.crowd(), 0.0, 10)
    making.claim(task, "b", prior=first.id)
    holders.look([(plan, task)], "me", making.crowd(), 50.0, 10)
    assert holders.free_at(plan, task) == 110.0


def test_who_works_for_ever_without_a_result_is_not_trusted_for_ever() -> None:
    plan, (task, *_) = ready()
    making.claim(task, "other")
    holders = Holders()
    for now in range(0, 601, 10):
        busy = making.crowd({"other": Busy("working", task.title, float(now))})
        holders.look([(plan, task)], "me", busy, float(now), 10)
    assert "other" in holders.distrusted
    assert holders.free_at(plan, task) <= 600.0


def test_a_task_that_others_pass_on_for_ever_is_done_all_the_same() -> None:
    """Each of two takes over from the other at the end of its lease, says that it works, and never shows a result."""
    plan, (task, *_) = ready()
    holders = Holders()
    last = b""
    for turn in range(11):
        assert not holders.contested(plan, task)
        last = making.claim(task, "ab"[turn % 2], prior=last).id
        now = 60.0 * turn
        busy = making.crowd({"ab"[turn % 2]: Busy("working", task.title, now)})
        holders.look([(plan, task)], "me", busy, now, 10)
        holders.look([], "me", busy, now + 1, 10)  # left to others for a moment
    assert holders.contested(plan, task)
    assert holders.free_at(plan, task) < now
    task.state = State.DONE
    holders.look([], "me", making.crowd(), 700.0, 10)
    assert not holders.contested(plan, task)


def test_two_slow_holders_are_no_contest() -> None:
    plan, (task, *_) = ready()
    holders = Holders()
    first = making.claim(task, "a")
    holders.look([(plan, task)], "me", making.crowd(), 0.0, 10)
    making.claim(task, "b", prior=first.id)
    holders.look([(plan, task)], "me", making.crowd(), 1000.0, 10)
    assert not holders.contested(plan, task)
