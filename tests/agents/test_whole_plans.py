"""Whole plans, from the goal to the last result, on an in-memory network in virtual time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from swarmtui.llm.model import ModelError
from swarmtui.peer.journal import Journal
from swarmtui.peer.memory import Faults, reproducible
from swarmtui.plan.clock import to_seconds
from swarmtui.plan.ops import Claim, Note, Pause, Pick, Release, Result, Retry, Veto
from swarmtui.plan.state import State

from .village import CodeModel, Village, goal, live_tasks, plan_of, until

FEWEST = ("decomposer", "scorer", "scorer", "executor")


@pytest.fixture
def autojump_clock() -> MockClock:
    return MockClock(autojump_threshold=0)


@pytest.mark.parametrize("synthesis", ["none", "root", "all"])
async def test_the_fewest_that_can_finish_a_plan_do(autojump_clock: MockClock, synthesis: str) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        agents = await village.add_all(FEWEST)
        op = await you.give(goal(synthesis=synthesis))
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        plan = plan_of(you.peer, op.id)
        live = live_tasks(plan)
        assert all(task.result for task in live if task.leaf)
        assert (plan.root.result is not None) == (synthesis != "none")
        assert len([task for task in live if task.leaf]) >= 4
        await trio.sleep(30)
        assert {agent.status.doing for agent in agents} == {"idle"}
        nursery.cancel_scope.cancel()


async def finished_picture(seed: int) -> bytes:
    async with trio.open_nursery() as nursery:
        village = Village(nursery, seed)
        you = await village.operator()
        await village.add_all(FEWEST)
        op = await you.give(goal())
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        nursery.cancel_scope.cancel()
    return you.peer.replica.picture(op.id)


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_replays_to_the_byte(seed: int) -> None:
    pictures = []
    for _ in range(2):
        with reproducible(seed):
            pictures.append(trio.run(finished_picture, seed, clock=MockClock(autojump_threshold=0)))
    assert pictures[0] == pictures[1]


async def test_drafts_come_from_different_angles_and_no_task_gets_too_many(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        for role in ("decomposer", "decomposer", "scorer", "scorer", "executor"):
            await village.add(role, CodeModel(random.Random(3), mark=20))
        op = await you.give(goal(max_depth=1, patience_s=600, rounds=2))
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        root = plan_of(you.peer, op.id).root
        angles = [draft.op.body.angle for draft in root.drafts.values()]
        assert len(angles) == 4
        assert len(set(angles)) == 4
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("victim", ["decomposer", "scorer", "executor"])
@pytest.mark.parametrize("after", [1.0, 6.0, 15.0, 40.0])
@pytest.mark.parametrize("way", ["kill", "crash"])
async def test_a_plan_survives_the_end_of_any_agent(
    autojump_clock: MockClock, victim: str, after: float, way: str
) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery, seed=int(after))
        you = await village.operator()
        agents = await village.add_all((*FEWEST, victim))
        op = await you.give(goal(of=3))
        await trio.sleep(after)
        if way == "kill":
            await village.kill(agents[-1])
        else:
            village.crash(agents[-1])
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        nursery.cancel_scope.cancel()


async def test_a_crashed_holder_is_taken_over_once_the_lease_is_over(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add_all(("decomposer", "scorer", "scorer"))
        slow = await village.add("executor", CodeModel(random.Random(1), seconds=10_000))
        op = await you.give(goal(max_depth=1, lease_s=30, synthesis="none"))
        await until(you.peer, lambda: slow.status.doing == "working", 300)
        (held,) = [task for task in plan_of(you.peer, op.id).tasks.values() if task.holder]
        village.crash(slow)
        crashed = trio.current_time()
        await village.add("executor")
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 600)
        first, second = held.chain
        assert first.author == slow.peer_id
        assert isinstance(second.body, Claim)
        assert second.body.prior == first.id
        assert trio.current_time() - crashed < 120
        nursery.cancel_scope.cancel()


async def test_a_holder_that_works_long_is_not_taken_over(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add_all(("decomposer", "scorer", "scorer"))
        await village.add("executor", CodeModel(random.Random(1), seconds=100))
        await village.add("executor", CodeModel(random.Random(2), seconds=100))
        op = await you.give(goal(max_depth=1, lease_s=30, synthesis="none", fan_out=(2, 2)))
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        assert all(len(task.chain) == 1 for task in plan_of(you.peer, op.id).tasks.values() if task.leaf and task.live)
        nursery.cancel_scope.cancel()


async def test_a_restarted_executor_goes_on_with_what_it_held(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add_all(("decomposer", "scorer", "scorer"))
        slow = await village.add("executor", CodeModel(random.Random(1), seconds=10_000))
        op = await you.give(goal(max_depth=1, lease_s=3000, synthesis="none"))
        await until(you.peer, lambda: slow.status.doing == "working", 300)
        village.crash(slow)
        await trio.sleep(5)
        await village.add("executor", identity=slow.peer.identity)
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 300)
        assert all(len(task.chain) <= 1 for task in plan_of(you.peer, op.id).tasks.values())
        nursery.cancel_scope.cancel()


async def test_an_executor_whose_journal_is_torn_does_nothing_again(autojump_clock: MockClock, tmp_path: Path) -> None:
    """It remembers its claims, not that it has done the work; it's quicker at the work than the others tell it."""
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add_all(("decomposer", "scorer", "scorer"))
        executor = await village.add("executor")
        op = await you.give(goal(max_depth=1, lease_s=3000, fan_out=(4, 4)))
        plan = plan_of(you.peer, op.id)
        await until(you.peer, lambda: any(task.result for task in plan.tasks.values()), 300)
        village.crash(executor)
        await trio.sleep(5)
        journal = Journal(tmp_path / "torn")
        journal.append(op for op in you.peer.replica.ops() if not isinstance(op.body, Result))
        quick = CodeModel(random.Random(3), seconds=0.01)
        await village.add("executor", quick, identity=executor.peer.identity, journal=journal)
        await until(you.peer, lambda: plan.done, 300)
        results = [op.body.claim for op in you.peer.replica.ops() if isinstance(op.body, Result)]
        assert len(results) == len(set(results)) == 5
        assert not plan.faulty
        nursery.cancel_scope.cancel()


async def test_a_killed_executor_gives_its_claim_back_at_once(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add_all(("decomposer", "scorer", "scorer"))
        slow = await village.add("executor", CodeModel(random.Random(1), seconds=10_000))
        op = await you.give(goal(max_depth=1, lease_s=3000, synthesis="none"))
        await until(you.peer, lambda: slow.status.doing == "working", 300)
        (held,) = [task for task in plan_of(you.peer, op.id).tasks.values() if task.holder]
        await village.kill(slow)
        await until(you.peer, lambda: held.state is State.READY, 30)
        await village.add("executor")
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 300)
        nursery.cancel_scope.cancel()


async def test_a_paused_agent_gives_its_claim_back_and_starts_nothing(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        agents = await village.add_all(FEWEST)
        executor = agents[-1]
        op = await you.give(goal(max_depth=1, attempts=1))
        for _ in range(3):
            await until(you.peer, lambda: executor.status.doing == "working", 300)
            executor.paused = True
            await trio.sleep(60)
            assert executor.status.doing == "paused"
            tasks = plan_of(you.peer, op.id).tasks.values()
            assert not any(task.holder for task in tasks)
            assert not any(task.state is State.FAILED or task.releases for task in tasks), "a pause is no failure"
            executor.paused = False
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 600)
        nursery.cancel_scope.cancel()


async def test_a_failing_model_fails_the_task_and_a_retry_opens_it(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add_all(("decomposer", "scorer", "scorer"))
        model = CodeModel(random.Random(5))
        model.failing = lambda request: True
        await village.add("executor", model)
        op = await you.give(goal(max_depth=1, attempts=2))
        plan = plan_of(you.peer, op.id)
        leaves = lambda: [task for task in plan.tasks.values() if task.live and task.leaf]  # noqa: E731
        await until(you.peer, lambda: bool(leaves()) and all(t.state is State.FAILED for t in leaves()), 1800)
        assert all(task.releases == 2 for task in leaves())
        model.failing = lambda request: False
        for task in leaves():
            await you.steer(op.id, Retry(task=task.id))
        await until(you.peer, lambda: plan.done, 600)
        nursery.cancel_scope.cancel()


async def test_what_one_executor_cannot_do_another_does(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add_all(FEWEST)
        model = CodeModel(random.Random(5))
        model.failing = lambda request: True
        await village.add("executor", model)
        op = await you.give(goal(max_depth=1))
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        nursery.cancel_scope.cancel()


async def test_scorers_settle_when_nothing_is_good_enough(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        for role in FEWEST:
            await village.add(role, CodeModel(random.Random(3), mark=10))
        op = await you.give(goal(max_depth=1, patience_s=3000))
        began = trio.current_time()
        await until(you.peer, lambda: plan_of(you.peer, op.id).root.winner is not None, 600)
        assert trio.current_time() - began < 300
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 600)
        nursery.cancel_scope.cancel()


async def test_scorers_settle_by_patience_though_nobody_can_judge_and_no_rival_comes(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        drafter = await village.add("decomposer")
        for _ in range(2):
            model = CodeModel(random.Random(3))
            model.failing = lambda request: True
            await village.add("scorer", model)
        op = await you.give(goal(max_depth=1, patience_s=60))
        await until(you.peer, lambda: bool(plan_of(you.peer, op.id).root.drafts), 120)
        village.crash(drafter)
        await until(you.peer, lambda: plan_of(you.peer, op.id).root.winner is not None, 180)
        nursery.cancel_scope.cancel()


async def test_a_lossy_network_only_takes_longer(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery, faults=Faults(loss=0.4, duplicate=0.2, reorder=0.3))
        you = await village.operator()
        await village.add_all((*FEWEST, "executor"))
        op = await you.give(goal())
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 3600)
        nursery.cancel_scope.cancel()


async def test_a_paused_plan_starts_nothing_new_and_goes_on(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add_all(FEWEST)
        op = await you.give(goal())
        await until(you.peer, lambda: bool(plan_of(you.peer, op.id).root.children), 300)
        paused = await you.steer(op.id, Pause(on=True))
        await trio.sleep(300)
        said = [item for item in you.peer.replica.ops(op.id) if to_seconds(item.hlc) > to_seconds(paused.hlc) + 1]
        assert all(isinstance(item.body, Result) for item in said)
        await you.steer(op.id, Pause(on=False))
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        nursery.cancel_scope.cancel()


async def test_the_operator_picks_vetoes_and_notes(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add("decomposer")
        op = await you.give(goal(max_depth=1))
        root = plan_of(you.peer, op.id).root
        await until(you.peer, lambda: len(root.drafts) == 2, 300)
        first, second = sorted(root.drafts)
        await you.steer(op.id, Veto(proposal=first))
        await you.steer(op.id, Note(task=op.id, text="cheaply"))
        await until(you.peer, lambda: len(root.drafts) == 3, 300)
        await you.steer(op.id, Pick(proposal=second))
        assert root.winner is root.drafts[second]
        await village.add("executor")
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 600)
        nursery.cancel_scope.cancel()


async def test_an_operator_steers_its_own_plans_only(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you, other = await village.operator(), await village.operator()
        op = await you.give(goal())
        await until(other.peer, lambda: op.id in other.peer.replica.plans, 60)
        with pytest.raises(PermissionError):
            await other.steer(op.id, Pause(on=True))
        nursery.cancel_scope.cancel()


async def test_an_observer_sends_nothing_and_misses_nothing(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add_all(FEWEST)
        op = await you.give(goal())
        await until(you.peer, lambda: bool(plan_of(you.peer, op.id).root.children), 300)
        observer = village.peer("observer")
        await nursery.start(observer.run)
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        await until(observer, lambda: observer.replica.fingerprint == you.peer.replica.fingerprint, 300)
        traffic = village.hub.traffic(observer.peer_id)
        assert (traffic.published, traffic.asked, traffic.answered) == (0, 0, 0)
        assert observer.said == 0
        nursery.cancel_scope.cancel()


async def test_each_task_is_done_once_when_nothing_goes_wrong(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        await village.add_all((*FEWEST, "executor", "executor"))
        op = await you.give(goal())
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        bodies = [said.body for said in you.peer.replica.ops(op.id)]
        tasks = [task for task in live_tasks(plan_of(you.peer, op.id)) if task.result]
        assert sum(isinstance(body, Result) for body in bodies) == len(tasks)
        assert not any(isinstance(body, Release) for body in bodies)
        nursery.cancel_scope.cancel()


async def test_a_bug_in_a_job_costs_that_job(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        agents = await village.add_all(FEWEST)
        model = agents[0].model
        kept, model.generate = model.generate, None  # type: ignore[method-assign]
        op = await you.give(goal(max_depth=1))
        await until(you.peer, lambda: "TypeError" in agents[0].status.trouble, 120)
        model.generate = kept  # type: ignore[method-assign]
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        assert agents[0].status.trouble == ""
        nursery.cancel_scope.cancel()


async def test_a_model_that_fails_is_told_with_its_remedy(autojump_clock: MockClock) -> None:
    async def fail(*_: object) -> None:
        raise ModelError("the prompt doesn't fit", "set llm.context higher")

    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        agents = await village.add_all(FEWEST)
        agents[0].model.generate = fail  # type: ignore[method-assign, assignment]
        await you.give(goal(max_depth=1))
        await until(you.peer, lambda: agents[0].status.trouble == "the prompt doesn't fit: set llm.context higher", 120)
        nursery.cancel_scope.cancel()


async def test_work_waits_for_a_model_that_is_away_and_doesnt_fail(autojump_clock: MockClock) -> None:
    async def fail(*_: object) -> None:
        raise ModelError("the server can't be reached", away=True)

    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        agents = await village.add_all(FEWEST)
        model = agents[-1].model
        kept, model.generate = model.generate, fail  # type: ignore[method-assign, assignment]
        op = await you.give(goal(max_depth=1, attempts=1))

        def given_back() -> list[Release]:
            return [said.body for said in you.peer.replica.ops(op.id) if isinstance(said.body, Release)]

        await until(you.peer, lambda: len(given_back()) >= 9, 7200)
        assert not any(body.failed for body in given_back())
        assert not any(task.state is State.FAILED for task in live_tasks(plan_of(you.peer, op.id)))
        model.generate = kept  # type: ignore[method-assign]
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 7200)
        nursery.cancel_scope.cancel()


async def test_a_trouble_is_forgotten_when_others_have_done_the_task(autojump_clock: MockClock) -> None:
    async def fail(*_: object) -> None:
        raise ModelError("the server can't be reached")

    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        agents = await village.add_all(("decomposer", *FEWEST))
        agents[0].model.generate = fail  # type: ignore[method-assign, assignment]
        op = await you.give(goal(max_depth=1))
        await until(you.peer, lambda: agents[0].status.trouble != "", 120)
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        await until(you.peer, lambda: agents[0].status.trouble == "", 120)
        nursery.cancel_scope.cancel()
