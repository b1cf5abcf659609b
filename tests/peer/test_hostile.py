"""Whatever comes from the network: dropped, counted, bounded, and no peer ends."""

from __future__ import annotations

import contextlib
import itertools
import random

import msgspec
import pytest
import trio
from hypothesis import given as generated
from hypothesis import strategies as st
from trio.testing import MockClock

from swarmtui.peer.frames import put_together
from swarmtui.peer.limits import AUTHOR_BURST, STRANGERS_BURST
from swarmtui.peer.network import MAX_FRAME_BYTES, Frame
from swarmtui.peer.peer import Peer
from swarmtui.peer.presence import Presence, open_presence, seal_presence
from swarmtui.peer.repair import SWAP_S, Answer, Refused, Request, raws
from swarmtui.peer.store import MAX_HELD, MAX_HELD_PER_AUTHOR
from swarmtui.plan.envelope import Identity, to_wire
from swarmtui.plan.ops import Op

from .world import World, draft, goal, identity, note, now_ms, op, until

EVIL = identity(666)


async def pair(world: World) -> tuple[Peer, Peer, bytes]:
    one, two = await world.started(range(1, 3))
    (given,) = await one.say(b"", goal())
    await until(world.equal)
    return one, two, given.id


def frame_of(*raw: bytes) -> bytes:
    return msgspec.msgpack.encode({"ops": [msgspec.Raw(wire) for wire in raw]})


async def test_a_neighbour_whose_answers_never_end_keeps_the_others_waiting_for_a_minute_at_most(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(nursery)
    one, two, given = await pair(world)
    evil = (op(EVIL, given, number, draft(given, f"{number}"), now_ms()) for number in itertools.count())

    async def endless(peer: str, request: bytes) -> bytes:
        await trio.sleep(4)
        return msgspec.msgpack.encode(Answer(ops=raws([next(evil)])))

    monkeypatch.setattr(one.network, "ask", endless)
    began = trio.current_time()
    assert await one._repair._swap_safely(two.peer_id) == SWAP_S // 4 - 1
    assert trio.current_time() - began == pytest.approx(SWAP_S)
    world.stop_all()


def forged(plan: bytes) -> bytes:
    """An op with the right author and a wrong signature."""
    real = op(identity(1), plan, 7, draft(plan))
    return msgspec.msgpack.encode((real.payload, bytes(64)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"\xff" * 1000,
        b"\x81\xa3ops\x91" + b"\x91" * 100_000 + b"\xc0",
        b"x" * (MAX_FRAME_BYTES + 1),
        frame_of(b"\x92\xc4\x00\xc4\x00"),
        frame_of(b"\xc0"),
        frame_of(forged(b"p" * 32)),
        put_together(presence=b"\x92\xc4\x01a\xc4\x01b"),
        put_together(presence=msgspec.msgpack.encode(("text", "text"))),
    ],
)
async def test_a_faulty_frame_is_refused_counted_and_its_bringer_struck(
    nursery: trio.Nursery, autojump_clock: MockClock, data: bytes
) -> None:
    world = World(nursery)
    one, two, plan = await pair(world)
    world.hub.inject(EVIL.peer_id, two.peer_id, data)
    await trio.sleep(1)
    assert world.hub.traffic(two.peer_id).strikes[EVIL.peer_id] == 1
    assert sum(two.counters.invalid.values()) == 1
    # And the same past the validator, as from a network without one.
    two._intake.frame(Frame(data, EVIL.peer_id))
    assert sum(two.counters.invalid.values()) == 2
    assert two.counters.invalid_by_neighbour[EVIL.peer_id] == 1
    await one.say(plan, draft(plan))
    await until(world.equal)
    assert two.counters.errors == 0
    world.stop_all()


async def test_a_forgery_costs_its_frame_and_no_other_op(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    one, two, plan = await pair(world)
    good = op(EVIL, plan, 0, draft(plan), now_ms())
    world.hub.inject(EVIL.peer_id, two.peer_id, frame_of(forged(plan), to_wire(good)))
    await trio.sleep(1)
    assert two.replica.get(good.id) is None
    assert two.counters.invalid_by_author[one.peer_id] == 1, "counted under the author that it claims"
    world.hub.inject(EVIL.peer_id, two.peer_id, put_together([good]))
    await until(lambda: two.replica.get(good.id))
    world.stop_all()


@generated(st.binary(max_size=300), st.randoms(use_true_random=False))
def test_no_bytes_make_it_raise(noise: bytes, rng: random.Random) -> None:
    """Mutated frames, requests, answers and presences."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            world = World(nursery)
            peer = world.make(1)
            plan = op(identity(3), b"", 0, goal())
            real = [
                put_together([plan], seal_presence(EVIL, Presence(peer=EVIL.peer_id, at=1, run=1, count=1))),
                msgspec.msgpack.encode(Request("swap", vector={plan.id: {"a": 1}})),
                msgspec.msgpack.encode(Request("push", ops=raws([plan]))),
                msgspec.msgpack.encode(Request("compare", hashes={plan.id: {"a": b"h"}})),
            ]
            data = bytearray(rng.choice(real))
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(4)] = noise[: rng.randrange(30)]
            for bytes_ in (noise, bytes(data)):
                peer._intake.valid(bytes_)
                peer._intake.frame(Frame(bytes_, EVIL.peer_id))
                with contextlib.suppress(Refused):
                    await peer._repair.answer(EVIL.peer_id, bytes_)
            assert peer.counters.errors == 0
            nursery.cancel_scope.cancel()

    trio.run(main, clock=MockClock(autojump_threshold=0))


async def test_ops_from_the_future_wait_for_their_time(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    _, two, plan = await pair(world)
    early = op(EVIL, plan, 0, draft(plan), now_ms() + 60_000)
    world.hub.inject(EVIL.peer_id, two.peer_id, put_together([early]))
    await trio.sleep(1)
    assert two.replica.get(early.id) is None
    (held,) = two.held
    assert held.op.author == EVIL.peer_id
    assert 58_000 < held.ahead_ms <= 60_000
    assert two.clock.ahead_ms(two.clock.last) <= 1, "never merged into the clock"
    await trio.sleep(50)
    assert two.held
    await until(lambda: two.replica.get(early.id), 20)
    await until(world.equal, 30)
    assert not two.held
    world.stop_all()


async def test_the_held_are_bounded(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    _, two, plan = await pair(world)
    far = now_ms() + 10_000_000
    for author in range(1000, 1030):
        ops = [op(identity(author), plan, n, draft(plan), far + n) for n in range(120)]
        two._store.take(ops, limited=False)
    assert len(two.held) == MAX_HELD
    near = op(identity(2000), plan, 0, draft(plan), now_ms() + 20_000)
    two._store.take([near], limited=False)
    assert near.id in {held.op.id for held in two.held}, "the nearest stay"
    assert MAX_HELD_PER_AUTHOR * 30 > MAX_HELD
    await until(lambda: two.replica.get(near.id), 30)
    world.stop_all()


async def test_a_flood_by_one_author_costs_its_share_and_nobody_elses(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World(nursery)
    one, two, plan = await pair(world)
    flood = [op(EVIL, plan, n, note(plan, "x"), now_ms()) for n in range(9_000)]
    for start in range(0, len(flood), 300):
        world.hub.inject(EVIL.peer_id, two.peer_id, put_together(flood[start : start + 300]))
    await trio.sleep(0.5)
    mine = sum(o.author == EVIL.peer_id for o in two.replica.ops())
    assert mine <= STRANGERS_BURST + 200
    assert two.counters.refused["author's rate"] > 0
    assert world.hub.traffic(two.peer_id).strikes[EVIL.peer_id] == 0, "who passes a flood on isn't to blame"
    (said,) = await one.say(plan, draft(plan))
    await until(lambda: two.replica.get(said.id), 1)
    assert AUTHOR_BURST < STRANGERS_BURST
    await until(world.equal, 120)
    world.stop_all()


async def test_a_flood_by_ever_new_keys_is_bounded(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    one, two, plan = await pair(world)
    await until(lambda: one.peer_id in two.presences)
    keys = [Identity.from_seed(n.to_bytes(32, "big")) for n in range(10_000, 10_000 + int(STRANGERS_BURST) + 500)]
    flood = [op(key, plan, 0, note(plan, "x"), now_ms()) for key in keys]
    for start in range(0, len(flood), 250):
        world.hub.inject(EVIL.peer_id, two.peer_id, put_together(flood[start : start + 250]))
    await trio.sleep(0.5)
    assert two.replica.count <= STRANGERS_BURST + 200
    (said,) = await one.say(plan, draft(plan))
    await until(lambda: two.replica.get(said.id), 1)
    world.stop_all()


async def test_ops_of_unknown_plans_wait_in_a_bounded_pen(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    _, two, _ = await pair(world)
    hidden = op(EVIL, b"", 0, goal("hidden"), now_ms())
    ops = [op(EVIL, hidden.id, n, note(hidden.id, "x" * 4000), now_ms()) for n in range(1, 600)]
    two._store.take(ops, limited=False)
    assert two.replica.count == 1
    assert two.replica.weight < 20 * 1024 * 1024
    world.hub.inject(EVIL.peer_id, two.peer_id, put_together([hidden]))
    await until(lambda: hidden.id in two.replica.plans)
    assert two.replica.count > 1
    await until(world.equal, 60)
    world.stop_all()


async def test_hostile_requests_are_refused_and_cost_little(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    one, two, plan = await pair(world)
    for request in (
        b"",
        b"\x91" * 50_000,
        msgspec.msgpack.encode({"do": "delete everything"}),
        msgspec.msgpack.encode({"do": "swap", "vector": {b"short": {"a": 1}}}),
        msgspec.msgpack.encode({"do": "swap", "vector": {plan: {"a": -1}}}),
        msgspec.msgpack.encode({"do": "push", "ops": [[b"x", b"y"]]}),
    ):
        with pytest.raises(Refused):
            await two._answer(EVIL.peer_id, request)
    absurd = {plan: {f"author{n}": 1 << 20 for n in range(1000)}}
    answer = msgspec.msgpack.decode(
        await two._answer("other", msgspec.msgpack.encode(Request("swap", vector=absurd))), type=Answer
    )
    assert answer.vector[plan] == {one.peer_id: 1}
    refused = 0
    for _ in range(100):
        try:
            await two._answer("greedy", msgspec.msgpack.encode(Request("compare")))
        except Refused:
            refused += 1
    assert refused >= 90
    assert two.counters.errors == 0
    world.stop_all()


@pytest.mark.parametrize("lie", ["garbage", "nested", "forged", "endless", "ids"])
async def test_hostile_answers_end_a_repair_not_the_peer(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    world = World(nursery)
    one, two, plan = await pair(world)
    seq = iter(range(100_000))

    async def answer(peer: str, request: bytes) -> bytes:
        await trio.sleep(0.01)
        if lie == "garbage":
            return b"\xc1"
        if lie == "nested":
            return b"\x81\xa3ops\x91" + b"\x91" * 100_000 + b"\xc0"
        if lie == "forged":
            return msgspec.msgpack.encode(Answer(ops=[msgspec.Raw(forged(plan))] * 50))
        if lie == "endless":
            more: list[Op] = [op(EVIL, plan, next(seq), note(plan, "x"), now_ms()) for _ in range(20)]
            return msgspec.msgpack.encode(Answer(ops=raws(more), fingerprint=b"?" * 16))
        return msgspec.msgpack.encode(
            Answer(ids={plan: {"a": random.Random(1).randbytes(32 * 5000)}}, fingerprint=b"?" * 16)
        )

    monkeypatch.setattr(two.network, "ask", answer)
    world.hub.inject(
        EVIL.peer_id,
        two.peer_id,
        put_together(
            presence=seal_presence(
                EVIL, Presence(peer=EVIL.peer_id, at=now_ms(), run=1, count=1, fingerprint=b"?" * 16)
            )
        ),
    )
    two._repair.want(one.peer_id)
    await trio.sleep(60)
    assert two.counters.errors == 0
    (said,) = await one.say(plan, draft(plan))
    await until(lambda: two.replica.get(said.id), 1)
    assert two.counters.swaps < 30
    world.stop_all()


async def test_a_replayed_presence_raises_nobody(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    one, two, _ = await pair(world)
    recorded: list[bytes] = []
    publish = two.network.publish

    async def tap(data: bytes) -> None:
        recorded.append(data)
        await publish(data)

    two.network.publish = tap  # type: ignore[method-assign]
    await until(lambda: len(recorded) > 2)
    await world.end(2)
    await until(lambda: not one.presences)
    for data in recorded:
        world.hub.inject(EVIL.peer_id, one.peer_id, data)
    newcomer = await world.start(3)
    await trio.sleep(100)
    for data in recorded:
        world.hub.inject(EVIL.peer_id, newcomer.peer_id, data)
    await trio.sleep(1)
    assert two.peer_id not in one.presences
    assert two.peer_id not in newcomer.presences
    assert one.counters.refused["presence of an earlier run"] > 0
    assert newcomer.counters.refused["stale presence"] > 0
    assert world.hub.traffic(one.peer_id).strikes[EVIL.peer_id] == 0
    world.stop_all()


async def test_one_wrong_clock_freezes_nobodys_presence(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    await world.started(range(1, 5))
    wrong = await world.start(9, clock=lambda: now_ms() - 3_600_000)
    await until(lambda: all(wrong.peer_id in world.peers[n].presences for n in range(1, 5)), 5)
    await until(lambda: any("3600 s behind" in notice for notice in wrong.notices), 5)
    await until(lambda: len(world.peers[1].presences) == 4)
    assert not world.peers[1].notices
    (given,) = await world.peers[1].say(b"", goal())
    await until(lambda: any(held.op.id == given.id for held in wrong.held), 30)
    world.stop_all()


async def test_a_bug_in_handling_costs_one_event(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(nursery)
    one, two, plan = await pair(world)
    with monkeypatch.context() as broken:
        broken.setattr(two.replica, "add_many", lambda ops: 1 / 0)
        (said,) = await one.say(plan, draft(plan))
        await until(lambda: two.counters.errors)
    await until(lambda: two.replica.get(said.id), 60)
    world.stop_all()


def test_presences_open_only_with_their_key() -> None:
    wire = seal_presence(EVIL, Presence(peer=EVIL.peer_id, at=1, run=1, count=1))
    assert open_presence(wire).peer == EVIL.peer_id
