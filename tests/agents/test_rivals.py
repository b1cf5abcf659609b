"""Rival drafts are weighed against each other: the first to be written doesn't win for being the first."""

from __future__ import annotations

import random

import trio
from trio.testing import MockClock

from swarmtui.agents.crowd import Busy
from swarmtui.agents.scorer import RIVAL_PART, awaits_rival
from swarmtui.plan.ops import Policy

from . import making
from .village import CodeModel, Village, goal, plan_of, until


def test_a_scorer_waits_for_a_rival_that_somebody_writes() -> None:
    plan = making.plan(Policy(rivals=2))
    making.draft(plan)
    writes = making.crowd({"d": Busy("drafting", plan.root.title, 0.0)}, decomposer=["d"])
    idles = making.crowd({"d": Busy("idle", "", 0.0)}, decomposer=["d"])
    elsewhere = making.crowd({"d": Busy("drafting", "another task", 0.0)}, decomposer=["d"])
    assert awaits_rival(plan, plan.root, "me", writes)
    assert not awaits_rival(plan, plan.root, "me", idles)
    assert not awaits_rival(plan, plan.root, "me", elsewhere)
    making.draft(plan, "d")
    assert not awaits_rival(plan, plan.root, "me", writes), "as many as the policy wants"


async def test_all_rivals_are_weighed_before_one_wins(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    village = Village(nursery)
    for seconds in (2.0, 8.0):
        await village.add("decomposer", CodeModel(random.Random(1), seconds))
    for seed in range(2):
        await village.add("scorer", CodeModel(random.Random(seed), 1.0, mark=90))
    operator = await village.operator()
    await trio.sleep(2)
    plan_id = (await operator.give(goal(max_depth=1, pass_mark=30))).id
    root = plan_of(operator.peer, plan_id).root
    await until(operator.peer, lambda: root.winner is not None, 60)
    assert len(root.drafts) == 2
    assert all(draft.votes for draft in root.drafts.values())
    nursery.cancel_scope.cancel()


async def test_nobody_waits_for_ever_for_a_rival(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    village = Village(nursery)
    await village.add("decomposer")
    for seed in range(2):
        await village.add("scorer", CodeModel(random.Random(seed), 1.0, mark=90))
    boaster = village.peer("decomposer")
    await nursery.start(boaster.run)
    boaster.show("drafting", goal().title)
    operator = await village.operator()
    await trio.sleep(2)
    plan_id = (await operator.give(goal(max_depth=1, pass_mark=30, patience_s=120))).id
    root = plan_of(operator.peer, plan_id).root
    await until(operator.peer, lambda: bool(root.drafts), 60)
    began = trio.current_time()
    await until(operator.peer, lambda: root.winner is not None, 60)
    assert 0.8 * 120 / RIVAL_PART <= trio.current_time() - began <= 120 / RIVAL_PART + 10
    nursery.cancel_scope.cancel()
