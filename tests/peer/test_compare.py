"""The comparison by ids, for what vectors can't tell."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import trio
from msgspec import Raw
from trio.testing import MockClock

from swarmtui.peer import repair
from swarmtui.plan.ops import Op

from .world import World, draft, goal, identity, now_ms, op, until


async def test_who_says_very_much_is_in_nobody_else_s_way(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred ops under one number, whose ids fill more than an answer, and another author's op beyond a gap."""
    monkeypatch.setattr(repair, "PAGE_BYTES", 2_000)
    world = World(nursery)
    one, other = await world.started(range(1, 3))
    (given,) = await one.say(b"", goal())
    await until(world.equal)
    loud, quiet = sorted((identity(98), identity(99)), key=lambda who: who.peer_id)
    storm = [op(loud, given.id, 0, draft(given.id, f"{number}"), now_ms()) for number in range(100)]
    late = op(quiet, given.id, 5, draft(given.id, "late"), now_ms())
    one._store.take(storm[69:], limited=False)
    other._store.take([*storm[:70], late], limited=False)
    assert await one._repair._compare(other.peer_id) == 1
    assert one.replica.get(late.id) is not None
    assert await one._repair._compare(other.peer_id) == 69 + 30, "then the loud one's turn comes"
    assert world.equal()
    world.stop_all()


async def test_what_is_held_back_is_sent_once(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer whose clock is ahead: the others may not take its plan for long, and needn't ask for it all that time."""
    sent = 0
    raws = repair.raws

    def counted(ops: Iterable[Op]) -> list[Raw]:
        nonlocal sent
        found = raws(ops)
        sent += len(found)
        return found

    monkeypatch.setattr(repair, "raws", counted)
    world = World(nursery)
    others = await world.started(range(1, 4))
    early = await world.start(9, clock=lambda: now_ms() + 1_000_000)
    (given,) = await early.say(b"", goal())
    await early.say(given.id, *(draft(given.id, f"{number}") for number in range(20)))
    await until(lambda: all(len(each.held) == 21 for each in others), 100)
    await trio.sleep(600)
    assert sent <= 21 * len(others)
    late = await world.start(10)
    await until(lambda: len(late.held) == 21, 100)
    assert sent <= 21 * len(world.peers)
    await until(world.equal, 600)
    world.stop_all()
