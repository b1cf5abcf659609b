"""The comparison by ids, for what vectors can't tell."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from swarmtui.peer import repair

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
