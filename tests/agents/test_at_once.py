"""Nobody waits for nothing: the first in line begin at once, and work begins before its claim has settled."""

from __future__ import annotations

import random

import pytest
import trio
from trio.testing import MockClock

from swarmtui.agents.ranking import among_first
from swarmtui.plan.clock import to_seconds

from .village import CodeModel, Village, goal, live_tasks, plan_of, until


@pytest.fixture
def autojump_clock() -> MockClock:
    return MockClock(autojump_threshold=0)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9])
def test_so_many_begin_at_once_and_others_for_another_task(count: int) -> None:
    peers = [f"peer{i}" for i in range(6)]
    chosen = []
    for number in range(20):
        task = bytes([number]) * 32
        first = {peer for peer in peers if among_first(peers, peer, task, count)}
        assert len(first) == min(count, len(peers))
        chosen.append(frozenset(first))
    assert len(set(chosen)) > 1 or count in (0, 9)


def test_who_hears_nobody_is_the_first() -> None:
    assert among_first([], "me", b"t" * 32, 1)
    assert among_first(["me"], "me", b"t" * 32, 1)
    assert not among_first(["me"], "me", b"t" * 32, 0)


async def test_a_result_is_said_when_its_claim_has_settled_and_no_later(autojump_clock: MockClock) -> None:
    """The model needs 2 s, the settling 5: one after the other they would take 7."""
    async with trio.open_nursery() as nursery:
        village = Village(nursery)
        you = await village.operator()
        for role in ("decomposer", "scorer", "scorer", "executor", "executor"):
            await village.add(role, CodeModel(random.Random(3)))
        op = await you.give(goal(max_depth=1, settle_ms=5_000))
        await until(you.peer, lambda: plan_of(you.peer, op.id).done, 1800)
        took = [
            to_seconds(task.result.hlc) - to_seconds(claim.hlc)
            for task in live_tasks(plan_of(you.peer, op.id))
            if task.result is not None
            for claim in task.chain
            if claim.author == task.result.author
        ]
        assert len(took) >= 2
        assert min(took) >= 5
        assert sorted(took)[len(took) // 2] < 6.5
        nursery.cancel_scope.cancel()
