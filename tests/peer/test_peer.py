"""Peers on a faulty network: their sets become equal, whatever happens."""

from __future__ import annotations

import random

import pytest
import trio
from trio.testing import MockClock

from swarmtui.peer.memory import reproducible
from swarmtui.peer.peer import Peer
from swarmtui.plan.ops import Op

from .world import World, draft, goal, identity, note, until


async def chatter(world: World, peers: list[Peer], plan: bytes, rounds: int, pause: float = 1.0) -> None:
    """Everybody says something, in an order that chance decides."""
    rng = random.Random(7)
    for turn in range(rounds):
        for peer in rng.sample(peers, len(peers)):
            if plan in peer.replica.plans:
                await peer.say(plan, draft(plan, f"{turn}"))
            await trio.sleep(rng.uniform(0, pause))


async def give(peer: Peer) -> Op:
    (op,) = await peer.say(b"", goal())
    return op


async def test_what_one_says_all_hear(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    peers = await world.started(range(1, 5))
    await trio.sleep(1)
    plan = (await give(peers[0])).id
    assert await until(world.equal) < 1.0
    with peers[1].watch() as watch:
        await peers[2].say(plan, draft(plan))
        changes = await watch.wait()
    assert [op.author for op in changes.added] == [peers[2].peer_id]
    await until(world.equal)
    assert len({peer.replica.picture(plan) for peer in peers}) == 1
    await until(lambda: all(peer.complete for peer in peers))
    world.stop_all()


async def test_ops_said_together_travel_together(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    one, two = await world.started(range(1, 3))
    await until(lambda: two.peer_id in one.presences)
    before = one.counters.frames_out
    plan = (await give(one)).id
    await one.say(plan, *(note(plan, f"word {n}") for n in range(20)))
    await trio.sleep(0.1)
    assert one.counters.frames_out - before <= 2
    assert two.replica.count == 21
    world.stop_all()


@pytest.mark.parametrize("seed", range(3))
async def test_sets_become_equal_under_loss_duplication_and_reordering(
    nursery: trio.Nursery, autojump_clock: MockClock, seed: int
) -> None:
    world = World(nursery, seed, loss=0.3, duplicate=0.2, reorder=0.3, delay=(0.01, 0.5))
    peers = await world.started(range(1, 7))
    plan = (await give(peers[0])).id
    await until(lambda: all(plan in peer.replica.plans for peer in peers))
    await chatter(world, peers, plan, 8)
    await until(world.equal, 180)
    assert peers[0].replica.count == 1 + 8 * len(peers)
    assert len({peer.replica.picture(plan) for peer in peers}) == 1
    world.stop_all()


async def test_halves_that_were_apart_agree_after_healing(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    peers = await world.started(range(1, 7))
    plan = (await give(peers[0])).id
    await until(world.equal)
    left = {peer.peer_id for peer in peers[:3]}
    world.hub.cut(lambda source, target: (source in left) != (target in left))
    await chatter(world, peers, plan, 6)
    await trio.sleep(5)
    assert not world.equal()
    world.hub.heal()
    assert await until(world.equal) < 30
    world.stop_all()


async def test_a_link_that_only_works_one_way_keeps_nobody_apart(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World(nursery)
    peers = await world.started(range(1, 5))
    deaf = peers[0].peer_id
    plan = (await give(peers[0])).id
    await until(world.equal)
    world.hub.cut(lambda source, target: target == deaf and source != peers[1].peer_id)
    await chatter(world, peers[1:], plan, 4)
    await until(world.equal, 60)
    world.stop_all()


async def test_a_late_listener_gets_everything_and_says_nothing(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World(nursery, loss=0.3)
    peers = await world.started(range(1, 5))
    plan = (await give(peers[0])).id
    await until(lambda: all(plan in peer.replica.plans for peer in peers))
    await chatter(world, peers, plan, 8)
    await until(world.equal, 180)
    observer = await world.start(9, silent=True)
    await until(lambda: world.equal() and observer.complete, 600)
    observer.show("watching")
    with pytest.raises(ValueError, match="silent"):
        await observer.say(plan, draft(plan))
    await trio.sleep(60)
    traffic = world.hub.traffic(observer.peer_id)
    assert (traffic.published, traffic.asked, traffic.answered, traffic.bytes_out) == (0, 0, 0, 0)
    assert observer.peer_id not in peers[0].presences
    world.stop_all()


async def test_a_listener_without_loss_is_complete_within_seconds(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World(nursery)
    peers = await world.started(range(1, 7))
    plan = (await give(peers[0])).id
    await until(world.equal)
    for peer in peers:
        await peer.say(plan, *(draft(plan, str(n)) for n in range(100)))
    await until(world.equal)
    observer = await world.start(9, silent=True)
    assert await until(world.equal) < 10
    told = sum(peer.counters.republished for peer in peers)
    assert told < 3 * observer.replica.count, "neighbours share the work of telling"
    world.stop_all()


async def test_leaving_politely_is_seen_at_once_and_a_crash_after_three_intervals(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World(nursery)
    one, two, three = await world.started(range(1, 4))
    await until(lambda: len(one.presences) == 2)
    with one.watch(presence=True) as watch:
        await world.end(2)
        await watch.wait()
    await until(lambda: two.peer_id not in one.presences, 0.5)
    crashed = trio.current_time()
    await world.end(3, abrupt=True)
    await until(lambda: one.presences[three.peer_id].lost, 3)
    assert one.silent_too_long(three.peer_id) is False
    await until(lambda: three.peer_id not in one.presences)
    assert 20 <= trio.current_time() - crashed <= 32
    world.stop_all()


async def test_presence_tells_what_a_peer_does(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    one, two = await world.started(range(1, 3))
    one.show("drafting", "a trip", 12.34)
    await until(lambda: one.peer_id in two.presences, 3)
    await until(lambda: two.presences[one.peer_id].presence.doing == "drafting", 3)
    said = two.presences[one.peer_id].presence
    assert (said.subject, said.tokens_per_second_x10, said.name, said.role) == ("a trip", 123, "p1", "scorer")
    sent = one.counters.presences_out
    for n in range(200):
        one.show("drafting", f"step {n}")
        await trio.sleep(0.01)
    assert one.counters.presences_out - sent <= 4, "changes are sent together"
    await trio.sleep(60)
    assert trio.current_time() - two.presences[one.peer_id].at <= 10
    assert two.silent_too_long("nobody"), "who was never heard"
    world.stop_all()


async def test_a_program_that_was_stopped_blames_nobody(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    one, two = await world.started(range(1, 3))
    await until(lambda: two.peer_id in one.presences and one.peer_id in two.presences)
    autojump_clock.jump(1000)
    assert not one.silent_too_long(two.peer_id)
    await trio.sleep(1)
    assert not one.silent_too_long(two.peer_id)
    assert trio.current_time() - one.presences[two.peer_id].at < 20
    world.stop_all()


async def test_half_a_character_from_a_model_mutes_nobody(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    one, two = await world.started(range(1, 3))
    one.show("drafting", "half \ud83d of it" + "x" * 500)
    await until(lambda: one.peer_id in two.presences and two.presences[one.peer_id].presence.doing)
    assert two.presences[one.peer_id].presence.subject.startswith("half ? of it")
    world.stop_all()


async def test_a_fingerprint_that_nobody_shares_isnt_complete(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    one = await world.start(1)
    await give(one)
    await trio.sleep(30)
    assert not one.complete, "nobody is there to compare with"
    two = await world.start(2)
    await until(lambda: one.complete and two.complete)
    world.stop_all()


def story(seed: int) -> list[tuple[float, str, int]]:
    """A run, as a trace."""
    trace: list[tuple[float, str, int]] = []

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            world = World(nursery, seed, loss=0.2, duplicate=0.1, reorder=0.2, delay=(0.01, 0.3))
            peers = await world.started(range(1, 6))
            plan = (await give(peers[0])).id
            await until(lambda: all(plan in peer.replica.plans for peer in peers))
            for peer in peers:
                await peer.say(plan, draft(plan))
                await trio.sleep(0.5)
                for other in peers:
                    trace.append((trio.current_time(), other.peer_id, other.counters.frames_in))
            await until(world.equal)
            trace.extend(
                (trio.current_time(), peer.replica.fingerprint.hex(), peer.counters.duplicates) for peer in peers
            )
            world.stop_all()

    with reproducible(seed):
        trio.run(main, clock=MockClock(autojump_threshold=0))
    return trace


def test_the_same_seed_gives_the_same_run() -> None:
    assert story(3) == story(3)
    assert story(3) != story(4)


async def test_a_swarm_at_rest_is_nearly_quiet(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    peers = await world.started(range(1, 9))
    await give(peers[0])
    await until(world.equal)
    await trio.sleep(120)
    before = sum(peer.counters.frames_out for peer in peers), sum(peer.counters.swaps for peer in peers)
    await trio.sleep(100)
    frames = sum(peer.counters.frames_out for peer in peers) - before[0]
    assert frames <= 8 * 13 + 5
    assert sum(peer.counters.swaps for peer in peers) == before[1]
    assert identity(1).peer_id == peers[0].peer_id
    world.stop_all()
