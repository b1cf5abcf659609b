"""The libp2p network among hostile nodes: no input ends a node, and who sends it is shut out for a while."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing
from libp2p.abc import INetStream
from libp2p.crypto.rsa import create_new_key_pair as create_rsa_key_pair
from libp2p.peer.id import ID
from libp2p.pubsub.pb import rpc_pb2
from libp2p.pubsub.validators import PUBSUB_SIGNING_PREFIX

from swarmtui.peer.libp2p import strikes
from swarmtui.peer.libp2p.gossip import MAX_IDS
from swarmtui.peer.libp2p.pipes import MAX_RPC_BYTES, prefixed
from swarmtui.peer.libp2p.requests import MAX_REQUEST_BYTES, PROTOCOL
from swarmtui.peer.network import MAX_ANSWER_BYTES, MAX_FRAME_BYTES, NetworkError

from .nodes import DEADLINE, Node, Villain, running, start, villain

TOPIC = "swarmtui/1/test"


def message(attacker: Villain, data: bytes, seqno: int = 1) -> rpc_pb2.Message:
    """A well-made, signed message."""
    made = rpc_pb2.Message(
        data=data, topicIDs=[TOPIC], from_id=attacker.host.get_id().to_bytes(), seqno=seqno.to_bytes(8, "big")
    )
    made.signature = attacker.host.get_private_key().sign(PUBSUB_SIGNING_PREFIX.encode() + made.SerializeToString())
    made.key = attacker.host.get_public_key().serialize()
    return made


def published(made: rpc_pb2.Message) -> bytes:
    return prefixed(rpc_pb2.RPC(publish=[made]).SerializeToString())


def changed(attacker: Villain, **fields: bytes) -> bytes:
    made = message(attacker, b"data")
    for name, value in fields.items():
        setattr(made, name, value)
    return published(made)


def control(**lists: list[object]) -> bytes:
    return prefixed(rpc_pb2.RPC(control=rpc_pb2.ControlMessage(**lists)).SerializeToString())


def ihave(ids: int) -> rpc_pb2.ControlIHave:
    return rpc_pb2.ControlIHave(topicID=TOPIC, messageIDs=[os.urandom(8) for _ in range(ids)])


def by_rsa(attacker: Villain) -> bytes:
    """A message that is well signed, by a key of a kind that no peer has."""
    keys = create_rsa_key_pair()
    made = message(attacker, b"data")
    made.from_id = ID.from_pubkey(keys.public_key).to_bytes()
    made.ClearField("signature")
    made.ClearField("key")
    made.signature = keys.private_key.sign(PUBSUB_SIGNING_PREFIX.encode() + made.SerializeToString())
    made.key = keys.public_key.serialize()
    return published(made)


GARBAGE: dict[str, Callable[[Villain], bytes]] = {
    "noise": lambda v: bytes(range(128, 256)) * 20,
    "endless length": lambda v: b"\xff" * 20,
    "oversized": lambda v: prefixed(b"x" * (MAX_RPC_BYTES + 1)),
    "undecodable": lambda v: prefixed(b"\x0a\xff\xff\xff\xff"),
    "undecodable in part": lambda v: prefixed(b"\x12\x03\x0a\x7fx"),
    "no from": lambda v: changed(v, from_id=b""),
    "absurd from": lambda v: changed(v, from_id=b"\x00\x24\x08\x01\x12\x20" + b"\xff" * 32),
    "short from": lambda v: changed(v, from_id=b"\x00\x24\x08\x01\x12\x20x"),
    "rsa from, rsa key": by_rsa,
    "rsa from, no key": lambda v: changed(v, from_id=b"\x12\x20" + b"x" * 32, key=b""),
    "rsa from, bad key": lambda v: changed(v, from_id=b"\x12\x20" + b"x" * 32, key=b"\x08\x00\x12\x02ab"),
    "rsa from, garbage key": lambda v: changed(v, from_id=b"\x12\x20" + b"x" * 32, key=b"\xff\xff\xff"),
    "unsigned": lambda v: changed(v, signature=b""),
    "short signature": lambda v: changed(v, signature=b"xyz"),
    "wrong signature": lambda v: changed(v, signature=b"x" * 64),
    "changed data": lambda v: changed(v, data=b"other"),
    "short seqno": lambda v: changed(v, seqno=b"1"),
    "oversized frame": lambda v: published(message(v, b"x" * (MAX_FRAME_BYTES + 1))),
    "id flood": lambda v: control(ihave=[ihave(MAX_IDS + 1)]),
    "ihave flood": lambda v: control(ihave=[ihave(1) for _ in range(1000)]),
    "graft flood": lambda v: control(graft=[rpc_pb2.ControlGraft(topicID=TOPIC)] * 1000),
    "absurd back-off": lambda v: control(prune=[rpc_pb2.ControlPrune(topicID=TOPIC, backoff=2**40)]),
    "subscription flood": lambda v: prefixed(
        rpc_pb2.RPC(
            subscriptions=[rpc_pb2.RPC.SubOpts(subscribe=True, topicid=str(n)) for n in range(200)]
        ).SerializeToString()
    ),
    "rpc flood": lambda v: prefixed(b"") * 5000,
}


async def still_well(one: Node, two: Node, what: bytes = b"all is well") -> None:
    await one.until(lambda: two.network.peer_id in one.network.neighbours)
    await two.until(lambda: one.network.peer_id in two.network.neighbours)
    await one.network.publish(what)
    await two.until(lambda: what in two.frames)
    await two.network.publish(what + b"!")
    await one.until(lambda: what + b"!" in one.frames)
    assert await one.network.ask(two.network.peer_id, b"?") == b"echo ?"
    assert not one.ended.is_set()
    assert not two.ended.is_set()


async def twice(call: Callable[[Node], Awaitable[object]], victim: Node) -> None:
    await call(victim)
    await call(victim)


async def test_garbage_on_the_gossip_stream_costs_a_strike() -> None:
    async with running(2) as (one, two):
        for number, (kind, make) in enumerate(GARBAGE.items(), 1):
            async with villain(kind) as attacker:
                await attacker.send(one, make(attacker))
                await one.until(lambda number=number: one.network._strikes.total >= number)
                assert one.network._strikes.total == number, kind
            await still_well(one, two, kind.encode())
        assert not one.network.notices


async def test_a_frame_that_the_validator_refuses_is_its_bearers_fault() -> None:
    async with running(2) as (one, two), villain() as attacker:
        stream = await attacker.stream(one)
        await stream.write(published(message(attacker, b"bad frame")) + published(message(attacker, b"good", 2)))
        await two.until(lambda: b"good" in two.frames)
        assert b"bad frame" not in one.frames + two.frames
        assert (one.network._strikes.total, two.network._strikes.total) == (1, 0)


async def test_a_validator_that_raises_or_hesitates() -> None:
    def validator(data: bytes) -> bool | None:
        if data == b"crash":
            raise RuntimeError("crash")
        return None if data == b"busy" else True

    async with running(2, validator=validator) as (one, two), villain() as attacker:
        stream = await attacker.stream(one)
        for number, data in enumerate((b"crash", b"busy", b"good")):
            await stream.write(published(message(attacker, data, number)))
        await two.until(lambda: two.frames == [b"good"])
        assert one.network._strikes.total == 1


async def test_repeated_garbage_shuts_out_and_the_ban_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(2) as (one, two), villain() as attacker:
        one.network._strikes._ban_s = 2.0
        for _ in range(strikes.STRIKES):
            await attacker.send(one, GARBAGE["noise"](attacker))
        await one.until(lambda: one.network.notices)
        assert attacker.peer_id[-8:] in one.network.notices[0]
        assert "until" in one.network.notices[0]
        await one.until(lambda: not one.network._swarm.connections.get(attacker.host.get_id()))
        with pytest.raises(Exception, match=r"failed|isn't|reset|closed|unable|No "):
            await twice(attacker.stream, one)  # the first may be opened before the door is shut
        await still_well(one, two)
        await one.until(lambda: not one.network.notices)
        stream = await attacker.stream(one)
        await stream.write(published(message(attacker, b"reformed", 99)))
        await two.until(lambda: b"reformed" in two.frames)


async def test_garbage_on_the_request_stream() -> None:
    async with running(2) as (one, two), villain() as attacker:
        await attacker.send(one, b"\xff" * 100, PROTOCOL)
        await attacker.send(one, (MAX_REQUEST_BYTES + 1).to_bytes(4, "big") + b"x", PROTOCOL)
        assert one.network._strikes.total == 2
        stream = await attacker.stream(one, PROTOCOL)
        await stream.write(b"\0\0")
        await stream.reset()
        stream = await attacker.stream(one, PROTOCOL)
        await stream.write(b"\0\0\0\x05abc")
        await stream.close()
        await still_well(one, two)


async def test_an_answer_that_announces_too_much_costs_a_strike() -> None:
    async def boast(stream: INetStream) -> None:
        await stream.write((MAX_ANSWER_BYTES + 1).to_bytes(4, "big"))

    async with running(2) as (one, two), villain() as attacker:
        attacker.host.set_stream_handler(PROTOCOL, boast)
        await attacker.stream(one)
        with pytest.raises(NetworkError):
            await one.network.ask(attacker.peer_id, b"?")
        assert one.network._strikes.total == 1
        await still_well(one, two)


async def test_unknown_protocols_and_broken_negotiation() -> None:
    async with running(2) as (one, two), villain() as attacker:
        with pytest.raises(Exception, match="failed to open"):
            await attacker.stream(one, "/nonsense/1")
        peer = await attacker.reach(one)
        for data in (b"\xff" * 50, b"", b"\x13/multistream/1.0.0\n" * 30, b"\x00" * 3000):
            stream = await attacker.swarm.new_stream(peer)
            await stream.write(data)
            await stream.reset()
        await still_well(one, two)


async def test_too_many_streams() -> None:
    async with running(2) as (one, two), villain() as attacker:
        peer = await attacker.reach(one)
        for _ in range(300):
            await attacker.swarm.new_stream(peer)
        await still_well(one, two)


FRAMES: dict[str, bytes] = {
    "garbage": os.urandom(500),
    "a wrong version": struct.pack("!BBHII", 7, 0, 0, 1, 0),
    "an unknown type": struct.pack("!BBHII", 0, 9, 0, 1, 0),
    "a window that overflows": struct.pack("!BBHII", 0, 1, 1, 101, 2**32 - 1) * 2,
    "a stream of ours": struct.pack("!BBHII", 0, 1, 1, 2, 0),
    "stream zero": struct.pack("!BBHII", 0, 1, 1, 0, 0),
    "an oversized frame": struct.pack("!BBHII", 0, 0, 1, 101, 2**31),
    "a goodbye": struct.pack("!BBHII", 0, 3, 0, 0, 0),
}


async def test_broken_yamux_ends_that_connection_only() -> None:
    async with running(2) as (one, two):
        for kind, frames in FRAMES.items():
            async with villain(kind) as attacker:
                conn = attacker.swarm.connections[await attacker.reach(one)][0].muxed_conn
                me = attacker.host.get_id()
                await one.until(lambda me=me: one.network._swarm.connections.get(me))
                conn._queue(frames)  # type: ignore[attr-defined]
                await one.until(lambda me=me: not one.network._swarm.connections.get(me))
            await still_well(one, two, kind.encode())


async def test_garbage_before_the_handshake() -> None:
    async with running(2) as (one, two):
        port = int(one.network.addresses[0].split("/")[4])
        for data in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(3000), b"\x13/multistream/1.0.0\n"):
            for _ in range(3):
                stream = await trio.open_tcp_stream("127.0.0.1", port)
                if data:
                    await stream.send_all(data)
                await stream.aclose()
        await still_well(one, two)


async def test_half_open_connections_neither_pile_up_nor_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async with trio.open_nursery() as nursery:
        one = await start(nursery, "one", secret="sesame")
        one.network._swarm.connection_config.inbound_upgrade_timeout = 0.3
        port = int(one.network.addresses[0].split("/")[4])
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        try:
            two = await start(nursery, "two", secret="sesame", join=one.network.addresses)
            await still_well(one, two)
            await one.until(lambda: one.network._swarm._handshakes == 0)
        finally:
            for each in idle:
                each.close()
        nursery.cancel_scope.cancel()


async def test_a_task_of_libp2p_that_fails_is_contained() -> None:
    """Whatever we haven't thought of: an exception in a background task of either service ends only that task."""

    async def fails() -> None:
        raise RuntimeError("unforeseen")

    async with running(2) as (one, two):
        gossip = one.network._gossip
        assert gossip is not None
        for service in (one.network._swarm, gossip, gossip.router):
            service.manager.run_task(fails)  # type: ignore[attr-defined]
        await trio.testing.wait_all_tasks_blocked()
        await still_well(one, two)


async def test_a_banned_peer_is_not_dialled_and_local_strikes_count() -> None:
    async with running(2) as (one, two):
        for _ in range(strikes.STRIKES):
            one.network.strike(two.network.peer_id, "a test")
        await one.until(lambda: not one.network.neighbours)
        await two.until(lambda: not two.network.neighbours)
        with trio.fail_after(DEADLINE):
            with pytest.raises(Exception, match=r".*"):
                await one.network._dial(two.network.peer_id, two.network.addresses[0])
        assert not one.network._swarm.connections.get(ID.from_string(two.network.peer_id))
