"""Real libp2p hosts: hostile gossip, requests and streams, handed in past the socket (fast) or sent (slow, whole)."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.peer.id import ID
from libp2p.pubsub.pb import rpc_pb2
from libp2p.pubsub.validators import PUBSUB_SIGNING_PREFIX

from swarmtui.peer.libp2p import Libp2pNetwork
from swarmtui.peer.libp2p.discovery import SERVICE, Mdns
from swarmtui.peer.libp2p.mesh import MESHSUB
from swarmtui.peer.libp2p.pipes import prefixed
from swarmtui.peer.libp2p.requests import PROTOCOL
from swarmtui.peer.libp2p.streams import HEADER, INITIAL_WINDOW, LeanStream
from swarmtui.peer.peer import Card, Peer
from swarmtui.plan.envelope import Identity
from tests.peer.libp2p.nodes import villain
from tests.peer.libp2p.test_muxer import by_hand
from tests.peer.world import draft, goal

from . import material
from .dice import Dice
from .mutate import spoil_bytes
from .watching import nothing_unforeseen

TOPIC = "swarmtui/1/fuzz"
DEADLINE = 150.0
KEYS = [create_new_key_pair(bytes([n]) * 32) for n in range(60, 68)]


class Stream:
    """What a handler needs of a stream, with everything that the other side sends on it."""

    def __init__(self, peer: ID, data: bytes) -> None:
        self.muxed_conn = self
        self.peer_id = peer
        self.answer = b""
        self._data = data

    async def read(self, n: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        size = len(self._data) if n is None or n < 0 else n
        piece, self._data = self._data[:size], self._data[size:]
        return piece

    async def write(self, data: bytes) -> None:
        self.answer += data

    async def close(self) -> None:
        pass

    async def reset(self) -> None:
        pass


# -- gossip and requests


def rpc(dice: Dice, ids: Any, plan: bytes) -> bytes:
    """What a neighbour writes on its gossip stream."""
    if dice.chance(5):
        return dice.octets(dice.below(400))
    made = rpc_pb2.RPC()
    for _ in range(dice.choose([1, 1, 1, 3])):
        made.publish.append(_message(dice, material.frame(dice, ids, plan)))
    if dice.chance(20):
        made.subscriptions.append(rpc_pb2.RPC.SubOpts(subscribe=dice.chance(50), topicid=dice.choose([TOPIC, "", "x"])))
    if dice.chance(25):
        made.control.CopyFrom(_control(dice))
    data = made.SerializeToString()
    if dice.chance(20):
        data = spoil_bytes(dice, data)
    return prefixed(data) if dice.chance(95) else prefixed(data + b"x" * dice.below(9))[: dice.below(99)]


def _message(dice: Dice, data: bytes) -> rpc_pb2.Message:
    keys = dice.choose(KEYS)
    origin = ID.from_pubkey(keys.public_key).to_bytes()
    made = rpc_pb2.Message(data=data, topicIDs=[TOPIC], from_id=origin, seqno=dice.octets(8).ljust(8, b"\0"))
    match dice.below(30):
        case 29:
            absurd = [b"", b"\0", origin[:-1], origin + b"x", b"\x12\x20" + b"x" * 32, dice.octets(38)]
            made.from_id = dice.choose(absurd)
        case 28:
            made.topicIDs.append("more")
        case 27:
            made.seqno = dice.choose([b"", b"x", b"y" * 9])
    made.signature = keys.private_key.sign(PUBSUB_SIGNING_PREFIX.encode() + made.SerializeToString())
    made.key = keys.public_key.serialize()
    match dice.below(30):
        case 29:
            made.signature = dice.choose([b"", made.signature[:-1], spoil_bytes(dice, made.signature)])
        case 28:
            made.key = dice.choose([b"", b"\xff", spoil_bytes(dice, made.key)])
        case 27:
            made.ClearField("data")
    return made


def _control(dice: Dice) -> rpc_pb2.ControlMessage:
    def topic() -> str:
        return dice.choose([TOPIC, "", "x"])

    ids = [dice.octets(dice.choose([0, 8, 46])) for _ in range(dice.choose([0, 1, 30]))]
    many = range(dice.choose([0, 1, 1, 20]))
    match dice.below(5):
        case 0:
            return rpc_pb2.ControlMessage(ihave=[rpc_pb2.ControlIHave(topicID=topic(), messageIDs=ids) for _ in many])
        case 1:
            return rpc_pb2.ControlMessage(iwant=[rpc_pb2.ControlIWant(messageIDs=ids) for _ in many])
        case 2:
            return rpc_pb2.ControlMessage(graft=[rpc_pb2.ControlGraft(topicID=topic()) for _ in many])
        case 3:
            back = dice.choose([0, 1, 60, 1 << 40])
            return rpc_pb2.ControlMessage(prune=[rpc_pb2.ControlPrune(topicID=topic(), backoff=back) for _ in many])
    return rpc_pb2.ControlMessage(idontwant=[rpc_pb2.ControlIDontWant(messageIDs=ids) for _ in many])


def gossip(dice: Dice, inputs: int) -> None:
    """Streams handed to the handlers of a real host, each by a neighbour that isn't there."""

    async def feed(one: Peer, plan: bytes) -> None:
        network = one.network
        assert isinstance(network, Libp2pNetwork)
        assert network._gossip is not None
        assert network._requests is not None

        def ids(dice: Dice) -> bytes:
            return dice.choose([plan, *[op.id for op in one.replica.ops()][-20:], b"?" * 32])

        for number in range(inputs):
            peer = ID(b"\x00\x24\x08\x01\x12\x20" + number.to_bytes(4, "big") * 8)
            if dice.chance(70):
                data = b"".join(rpc(dice, ids, plan) for _ in range(dice.choose([1, 1, 3])))
                await network._gossip.stream_handler(Stream(peer, data))  # type: ignore[arg-type]
            else:
                body = material.request(dice, ids, plan)
                size = dice.choose([len(body)] * 9 + [len(body) + 1, 0, 1 << 31])
                await network._requests._serve(Stream(peer, size.to_bytes(4, "big") + body))  # type: ignore[arg-type]

    _run(feed)


def sockets(dice: Dice, inputs: int) -> None:
    """The same, really sent: a host of its own for every few streams, and raw bytes before any handshake."""

    async def feed(one: Peer, plan: bytes) -> None:
        address = one.network.addresses[0].split("/")
        for number in range(0, inputs, 5):
            async with villain((number, dice.below(1 << 30))) as attacker:
                for _ in range(min(5, inputs - number)):
                    await _attack(attacker, one, address, plan)

    async def _attack(attacker: Any, one: Peer, address: list[str], plan: bytes) -> None:
        def ids(dice: Dice) -> bytes:
            return dice.choose([plan, b"?" * 32])

        node: Any = type("Node", (), {"network": one.network})
        match dice.below(4):
            case 0:
                stream = await trio.open_tcp_stream(address[2], int(address[4]))
                hello = b"\x13/multistream/1.0.0\n"
                data = dice.choose([b"", hello, hello + b"\x07/noise\n", hello * 40]) + dice.octets(dice.below(200))
                try:
                    await stream.send_all(spoil_bytes(dice, data) if dice.chance(50) else data)
                finally:
                    await trio.aclose_forcefully(stream)
            case 1:
                body = material.request(dice, ids, plan)
                await _send(attacker, node, len(body).to_bytes(4, "big") + body, PROTOCOL)
            case _:
                data = b"".join(rpc(dice, ids, plan) for _ in range(1 + dice.below(4)))
                await _send(attacker, node, data, MESHSUB)

    _run(feed)


async def _send(attacker: Any, node: Any, data: bytes, protocol: Any) -> None:
    """Write on a stream of its own, and end it."""
    with trio.move_on_after(5):
        try:
            stream = await attacker.stream(node, protocol)
            await stream.write(data)
            await stream.close()
        except Exception:  # shut out, reset: as it should be
            return


def _run(feed: Callable[[Peer, bytes], Awaitable[None]]) -> None:
    """Feed one of two real peers; then an honest op goes both ways, and nothing happened that wasn't foreseen."""

    async def until(true: Callable[[], object]) -> None:
        with trio.fail_after(DEADLINE):
            for _ in iter(lambda: bool(true()), True):
                await trio.sleep(0.01)

    async def main() -> None:
        one, two = _peer(1), _peer(2)
        async with trio.open_nursery() as nursery:
            for peer in (one, two):
                peer.abrupt = True
                await nursery.start(peer.run)
            await two.network.connect(one.network.addresses[0])
            await until(lambda: one.network.neighbours and two.network.neighbours)
            (given,) = await one.say(b"", goal())
            await until(lambda: given.id in two.replica.plans)
            await feed(one, given.id)
            await until(lambda: one.network.neighbours and two.network.neighbours)
            for here, there in ((one, two), (two, one)):
                (said,) = await here.say(given.id, draft(given.id))
                await until(lambda there=there, said=said: there.replica.get(said.id))
                assert here.counters.errors == 0
            assert two.peer_id in one.network.neighbours
            nursery.cancel_scope.cancel()

    with nothing_unforeseen():
        trio.run(main)


def _peer(number: int) -> Peer:
    identity = Identity.from_seed(bytes([number]) * 32)
    return Peer(
        identity,
        Libp2pNetwork(identity, "fuzz", mdns=False, rng=random.Random(number)),
        now_ms=lambda: time.time_ns() // 1_000_000,
        rng=random.Random(number),
        card=Card(name=f"p{number}", role="scorer"),
        fresh=True,
    )


# -- yamux


def muxers(dice: Dice, inputs: int) -> None:
    """Frames by hand: the connection serves on or ends; nothing is raised, and no buffer passes its window."""

    async def main() -> None:
        for _ in range(0, inputs, 10):
            async with by_hand() as (conn, raw), trio.open_nursery() as nursery:
                nursery.start_soon(_accept, conn)
                for _ in range(10):
                    try:
                        await raw.send_all(_yamux(dice))
                    except trio.BrokenResourceError:
                        break
                    await trio.testing.wait_all_tasks_blocked()
                    assert all(len(stream._buffer) <= INITIAL_WINDOW for stream in conn._streams.values())
                nursery.cancel_scope.cancel()

    trio.run(main)


async def _accept(conn: Any) -> None:
    try:
        while True:
            stream: LeanStream = await conn.accept_stream()
            if stream.stream_id % 4 == 1:
                await stream.read(10)
            elif stream.stream_id % 4 == 3:
                await stream.close()
    except Exception:
        return


def _yamux(dice: Dice) -> bytes:
    made = b""
    for _ in range(1 + dice.below(4)):
        kind = dice.choose([0] * 20 + [1] * 8 + [2, 3, 4, 255])
        flags = dice.choose([0] * 20 + [1] * 8 + [2, 4, 8, 3, 0xFFFF])
        stream = dice.choose([1] * 6 + [0, 3, 5, 2, 4, 0xFFFFFFFF])
        size = dice.choose([0, 1, 100, 1 << 18, (1 << 18) + 1, (1 << 32) - 1])
        made += HEADER.pack(dice.choose([0] * 60 + [1]), kind, flags, stream, size)
        if kind == 0:
            made += bytes(size) if size <= INITIAL_WINDOW + 1 and dice.chance(50) else dice.octets(min(size, 300))
    return spoil_bytes(dice, made) if dice.chance(10) else made


# -- mDNS


def announcements(dice: Dice, inputs: int) -> None:
    """What anybody on the network may announce."""
    heard = Mdns("tag", "me")
    told: list[tuple[str, ...]] = []
    heard._tell = lambda call, *arguments: told.append(arguments)  # type: ignore[method-assign]
    for _ in range(inputs):
        who = dice.choose(material.PEOPLE).peer_id
        address = f"/ip4/127.0.0.1/tcp/4001/p2p/{who}".encode()
        values = [address, spoil_bytes(dice, address), b"", None, b"\xff", dice.octets(250), 7]
        properties: dict[Any, Any] = {b"swarm": dice.choose([b"tag", b"tag", b"tag", None, b"\xff"])}
        for _ in range(dice.below(4)):
            key = dice.choose([b"a0", b"a1", b"a\xff", b"", "a2", None])
            properties[key] = dice.choose(values)
        known: Any = type("Info", (), {"properties": properties})()
        zeroconf: Any = type("Zeroconf", (), {"get_service_info": lambda self, kind, name, known=known: known})()
        name = dice.choose([who + "." + SERVICE, SERVICE, "", "\udcff." + SERVICE, "x" * 300])
        heard.add_service(zeroconf, SERVICE, name)
        heard.remove_service(zeroconf, SERVICE, name)
    assert all(isinstance(word, str) for words in told for word in words)
