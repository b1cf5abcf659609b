"""The carousel: what listeners who can't ask rely on."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from swarmtui.peer.peer import Peer
from swarmtui.peer.presence import INTERVAL_S
from swarmtui.peer.spread import CAROUSEL_BYTES, IDLE_AFTER_S
from swarmtui.plan.ops import OpId

from .world import World, goal, note, until

WORDS = 400
BUNDLES = WORDS * 3_400 // CAROUSEL_BYTES + 2


async def with_a_long_log(nursery: trio.Nursery) -> tuple[World, list[Peer]]:
    world = World(nursery)
    peers = await world.started(range(1, 13))
    (given,) = await peers[0].say(b"", goal())
    for number in range(WORDS):
        await peers[0].say(given.id, note(given.id, f"{number}" + "." * 3_000))
    await until(world.equal)
    return world, peers


async def tell(peer: Peer) -> set[OpId]:
    """A peer takes its turn, and the others hear it."""
    bundle = peer._spread._next_turn()
    await peer._spread._republish(bundle)
    await trio.sleep(0.1)
    return {op.id for op in bundle}


async def test_in_turns_agents_tell_the_whole_log_once_before_anything_twice(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world, peers = await with_a_long_log(nursery)
    began = trio.current_time()
    for turn in range(BUNDLES):
        await tell(peers[turn % len(peers)])
    assert all(peers[0]._store.told[op.id] >= began for op in peers[0].replica.ops())
    world.stop_all()


async def test_what_was_last_on_the_topic_comes_last(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    """Also when it was said before others' first turns, and by whoever joined with a log of its own."""
    world, peers = await with_a_long_log(nursery)
    for turn in range(BUNDLES // 2):
        await tell(peers[turn])
    plan = next(iter(peers[0].replica.plans))
    (new,) = await peers[3].say(plan, note(plan, "new"))
    await until(world.equal)
    for turn in range(BUNDLES // 2 - 1):
        assert new.id not in await tell(peers[turn])
    (unheard,) = await peers[4].say(plan, note(plan, "unheard"))
    await until(world.equal)
    peers[5]._store.told.pop(unheard.id)
    assert unheard.id in await tell(peers[5])
    world.stop_all()


async def test_the_pace_slackens_when_all_have_had_the_same_and_it_was_told_since(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world, peers = await with_a_long_log(nursery)
    spread = peers[0]._spread
    await trio.sleep(2 * INTERVAL_S)  # all have shown what they hold
    assert not spread._idle()  # from here on it's reckoned
    await trio.sleep(IDLE_AFTER_S + 1)
    assert not spread._idle(), "for a minute all have had the same, but a part of it wasn't told in that time"
    for turn in range(BUNDLES):
        await tell(peers[turn % len(peers)])
    assert spread._idle()
    plan = next(iter(peers[0].replica.plans))
    await peers[3].say(plan, note(plan, "new"))
    await until(world.equal)
    assert not spread._idle()
    world.stop_all()


async def test_an_empty_log_has_no_turn(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    peer = await world.start(1)
    assert peer._spread._next_turn() == []
    world.stop_all()
