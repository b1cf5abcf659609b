"""When a decomposer drafts, and what."""

from __future__ import annotations

import pytest

from swarmtui.agents.crowd import Busy
from swarmtui.agents.decomposer import choose_angle, choose_draft, wants
from swarmtui.agents.prompting import Prompts
from swarmtui.plan.ops import Policy, Step
from swarmtui.plan.state import State, Task

from . import making


def test_an_open_branch_wants_a_fresh_draft() -> None:
    plan = making.plan()
    wanted = wants(plan, plan.root, "me", making.crowd())
    assert wanted is not None
    assert wanted.base is None


def test_rivals_are_enough() -> None:
    plan = making.plan(Policy(rivals=2))
    making.draft(plan, "a")
    assert wants(plan, plan.root, "me", making.crowd()) is not None
    making.draft(plan, "b")
    assert wants(plan, plan.root, "me", making.crowd()) is None


def test_one_decomposer_supplies_all_rivals() -> None:
    plan = making.plan(Policy(rivals=2))
    making.draft(plan, "me")
    assert wants(plan, plan.root, "me", making.crowd()) is not None


def test_drafts_under_way_count_while_they_are_heard() -> None:
    plan = making.plan(Policy(rivals=1))
    busy = {"other": Busy("drafting", plan.root.title, 0.0)}
    assert wants(plan, plan.root, "me", making.crowd(busy)) is None
    assert wants(plan, plan.root, "other", making.crowd(busy)) is not None


def test_vetoed_drafts_are_replaced() -> None:
    plan = making.plan(Policy(rivals=1))
    making.draft(plan).vetoed = True
    wanted = wants(plan, plan.root, "me", making.crowd())
    assert wanted is not None
    assert wanted.base is None


def test_never_a_ninth_draft_of_one_author() -> None:
    plan = making.plan(Policy(rivals=8))
    for number in range(8):
        making.draft(plan, "me", hlc=number + 1).vetoed = True
    assert wants(plan, plan.root, "me", making.crowd()) is None
    assert wants(plan, plan.root, "other", making.crowd()) is not None


def test_the_best_is_refined_once_all_are_judged() -> None:
    plan = making.plan(Policy(rivals=2, rounds=1, need=2, of=3))
    poor, good = making.draft(plan, "a", hlc=1), making.draft(plan, "b", hlc=2)
    around = making.crowd(scorer=["s", "t"])
    for draft, mark in ((poor, 20), (good, 50)):
        making.vote(draft, "s", mark)
    assert wants(plan, plan.root, "me", around) is None
    for draft, mark in ((poor, 30), (good, 40)):
        making.vote(draft, "t", mark)
    wanted = wants(plan, plan.root, "me", around)
    assert wanted is not None
    assert wanted.base is good


def test_a_third_living_scorer_is_waited_for() -> None:
    plan = making.plan(Policy(rivals=1, need=2, of=3))
    only = making.draft(plan)
    making.vote(only, "s", 20)
    making.vote(only, "t", 20)
    assert wants(plan, plan.root, "me", making.crowd(scorer=["s", "t", "u"])) is None
    assert wants(plan, plan.root, "me", making.crowd(scorer=["s", "t"])) is not None


def test_rounds_end() -> None:
    plan = making.plan(Policy(rivals=1, rounds=1, need=1, of=1))
    first = making.draft(plan)
    second = making.draft(plan, hlc=20, base=first.op.id)
    for draft in (first, second):
        making.vote(draft, "s", 20)
    assert wants(plan, plan.root, "me", making.crowd(scorer=["s"])) is None


@pytest.mark.parametrize("change", ["winner", "leaf", "dead"])
def test_decided_tasks_want_nothing(change: str) -> None:
    plan = making.plan()
    if change == "winner":
        making.accept(plan, making.draft(plan))
    elif change == "leaf":
        plan.root.leaf = True
    else:
        plan.root.live = False
    assert wants(plan, plan.root, "me", making.crowd()) is None


def test_a_task_without_any_draft_goes_first() -> None:
    plan = making.plan()
    making.draft(plan, "a")
    bare = Task(
        id=b"t" * 32, plan=plan.id, depth=1, parent=plan.id, proposal=None, index=0, step=Step(title="Buy flour"),
        live=True, state=State.OPEN,
    )  # fmt: skip
    found = choose_draft([(plan, plan.root), (plan, bare)], "me", making.crowd())
    assert found is not None
    assert found.task is bare


def test_angles_differ_until_all_are_taken() -> None:
    angles = Prompts.load().angles
    plan = making.plan()
    seen = []
    for number in range(len(angles)):
        angle = choose_angle(angles, 3, plan.root)
        seen.append(angle.name)
        making.draft(plan, hlc=number + 1, angle=angle.name)
    assert len(set(seen)) == len(angles)
    assert seen[0] == angles[3].name
    assert choose_angle(angles, 3, plan.root).name == angles[3].name
