"""The carousel: what listeners who can't ask rely on."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from swarmtui.peer.spread import CAROUSEL_BYTES, Spread
from swarmtui.plan.ops import Op, OpId

from .world import World, goal, note, until


async def test_turns_reach_all_of_a_log_that_grew_after_they_began(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """Agents take their first turns while the log is short. In a large swarm the next ones come minutes later, and the
    end of the log must not wait until everybody has gone through its beginning."""
    world = World(nursery)
    peers = await world.started(range(1, 13))
    (given,) = await peers[0].say(b"", goal())
    await until(world.equal)
    spreads: list[Spread] = [peer._spread for peer in peers]
    for spread in spreads:
        spread._next_turn()
    for number in range(400):
        await peers[0].say(given.id, note(given.id, f"{number}" + "." * 3_000))
    await until(world.equal)
    held = {op.id for op in peers[0].replica.ops()}
    bundles = 400 * 3_200 // CAROUSEL_BYTES
    told: set[OpId] = set()
    for _ in range(12):  # each agent's next twelve turns: several for each bundle
        for spread in spreads:
            turn: list[Op] = spread._next_turn()
            told |= {op.id for op in turn}
    assert 12 * len(spreads) > 6 * bundles
    assert len(told) > 0.99 * len(held)
    world.stop_all()


async def test_an_empty_log_has_no_turn(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    peer = await world.start(1)
    assert peer._spread._next_turn() == []
    world.stop_all()
