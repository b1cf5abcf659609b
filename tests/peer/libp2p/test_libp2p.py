"""The libp2p network among honest nodes: real hosts on loopback."""

from __future__ import annotations

import socket

import pytest
import trio
from libp2p.peer.id import ID
from multiaddr import Multiaddr

from swarmtui.peer.libp2p import Libp2pNetwork, host
from swarmtui.peer.network import MAX_ANSWER_BYTES, MAX_FRAME_BYTES, NetworkError

from .nodes import DEADLINE, Node, Seed, echo, meet, running, start


async def test_frames_reach_everyone_else_once() -> None:
    async with running(4) as nodes:
        for number in range(20):
            await nodes[number % 4].network.publish(b"frame %d" % number)
        for place, node in enumerate(nodes):
            expected = {b"frame %d" % n for n in range(20) if n % 4 != place}
            await node.until(lambda node=node, expected=expected: len(node.frames) >= len(expected))
            assert sorted(node.frames) == sorted(expected)


async def test_the_largest_frame_passes_and_a_larger_one_is_refused() -> None:
    async with running(2) as (one, two):
        await one.network.publish(b"x" * MAX_FRAME_BYTES)
        await two.until(lambda: two.frames)
        assert two.frames == [b"x" * MAX_FRAME_BYTES]
        with pytest.raises(ValueError, match="too large"):
            await one.network.publish(b"x" * (MAX_FRAME_BYTES + 1))


async def test_frames_pass_through_a_node_between() -> None:
    async with trio.open_nursery() as nursery:
        left, middle, right = [await start(nursery, name) for name in "lmr"]
        await left.network.connect(middle.network.addresses[0])
        await right.network.connect(middle.network.addresses[0])
        await middle.until(lambda: len(middle.network.neighbours) == 2)
        await left.network.publish(b"news")
        await right.until(lambda: right.frames == [b"news"])
        assert right.events[-1].source == middle.network.peer_id  # type: ignore[union-attr]
        nursery.cancel_scope.cancel()


async def test_a_late_neighbour_gets_the_latest_frames() -> None:
    async with trio.open_nursery() as nursery:
        early = await start(nursery, "early")
        await early.network.publish(b"just now")
        late = await start(nursery, "late", join=early.network.addresses)
        await late.until(lambda: late.frames == [b"just now"])
        nursery.cancel_scope.cancel()


async def test_joined_and_left_and_a_polite_goodbye() -> None:
    async with running(2) as (one, two):
        assert one.moves == [("Joined", two.network.peer_id)]
        await two.stop()
        await one.until(lambda: ("Left", two.network.peer_id) in one.moves)
        assert one.network.neighbours == ()


async def hear_each_other(one: Node, other: Node, what: bytes) -> None:
    for speaker, listener in ((one, other), (other, one)):
        await speaker.until(lambda s=speaker, o=listener: o.network.peer_id in s.network.neighbours)
    for speaker, listener in ((one, other), (other, one)):
        await speaker.network.publish(what)
        await listener.until(lambda listener=listener: what in listener.frames)


async def test_a_restart_with_the_same_key_is_accepted_and_heard() -> None:
    async with trio.open_nursery() as nursery:
        stays = await start(nursery, "stays")
        for life in range(3):
            comes = await start(nursery, "comes", join=stays.network.addresses)
            await hear_each_other(stays, comes, b"life %d" % life)
            await comes.stop()
            await stays.until(lambda: stays.network.neighbours == ())
        nursery.cancel_scope.cancel()


async def test_a_lost_address_is_redialled() -> None:
    async with trio.open_nursery() as nursery:
        server = await start(nursery, "server")
        port = int(server.network.addresses[0].split("/")[4])
        client = await start(nursery, "client", join=server.network.addresses)
        await client.until(lambda: client.network.neighbours)
        await server.stop()
        await client.until(lambda: not client.network.neighbours)
        again = await start(nursery, "server", port=port)
        assert again.network.addresses == server.network.addresses
        await client.until(lambda: client.network.neighbours)
        nursery.cancel_scope.cancel()


async def test_a_cut_connection_is_renewed() -> None:
    async with running(2) as (one, two):
        for _ in range(2):
            peer = ID.from_string(two.network.peer_id)
            await one.network._swarm.hang_up(peer)
            await two.until(lambda: not two.network.neighbours)
            await two.until(lambda: two.network.neighbours)
            await one.until(lambda: one.network.neighbours)
        await one.network.publish(b"still here")
        await two.until(lambda: b"still here" in two.frames)
        await two.network.publish(b"so am I")
        await one.until(lambda: b"so am I" in one.frames)


async def test_one_broken_direction_renews_the_connection() -> None:
    """A gossip stream that breaks alone would leave half of the link deaf."""
    async with running(2) as (one, two):
        gossip = one.network._gossip
        assert gossip is not None
        await gossip.peers[ID.from_string(two.network.peer_id)].reset()
        await two.until(lambda: ("Left", one.network.peer_id) in two.moves)
        await two.until(lambda: two.network.neighbours)
        await one.until(lambda: one.network.neighbours)
        await one.network.publish(b"one")
        await two.network.publish(b"two")
        await two.until(lambda: b"one" in two.frames)
        await one.until(lambda: b"two" in one.frames)


async def test_two_connections_at_once_do_no_harm() -> None:
    async with trio.open_nursery() as nursery:
        one, two = await start(nursery, 1), await start(nursery, 2)
        await one.network.connect(two.network.addresses[0])
        await two.network.connect(one.network.addresses[0])
        await meet([one, two])
        for number in range(5):
            await one.network.publish(b"a%d" % number)
            await two.network.publish(b"b%d" % number)
        await one.until(lambda: len(one.frames) == 5)
        await two.until(lambda: len(two.frames) == 5)
        nursery.cancel_scope.cancel()


async def test_more_reconnects_than_libp2p_has_slots() -> None:
    """Upstream keeps a slot for every inbound connection ever made."""
    async with trio.open_nursery() as nursery:
        server = await start(nursery, "server")
        server.network._swarm._inbound_limiter.total_tokens = 3
        client = await start(nursery, "client")
        peer = ID.from_string(server.network.peer_id)
        for _ in range(8):
            await client.network._swarm.dial_addr(Multiaddr(server.network.addresses[0]), peer)
            await client.network._swarm.hang_up(peer)
        await client.network.connect(server.network.addresses[0])
        await client.until(lambda: client.network.neighbours)
        nursery.cancel_scope.cancel()


# --- requests


async def test_ask_and_answer() -> None:
    async with running(2) as (one, two):
        assert await one.network.ask(two.network.peer_id, b"?") == b"echo ?"
        assert await two.network.ask(one.network.peer_id, b"x" * 200_000) == b"echo " + b"x" * 200_000


async def test_a_large_answer_and_a_too_large_one() -> None:
    async def much(peer: str, request: bytes) -> bytes:
        return b"y" * (MAX_ANSWER_BYTES + int(request))

    async with running(2, handler=much) as (one, two):
        assert len(await one.network.ask(two.network.peer_id, b"0")) == MAX_ANSWER_BYTES
        with pytest.raises(NetworkError):
            await one.network.ask(two.network.peer_id, b"1")
        assert len(await one.network.ask(two.network.peer_id, b"0")) == MAX_ANSWER_BYTES


async def test_a_handler_that_raises_fails_at_the_asker_only() -> None:
    async def broken(peer: str, request: bytes) -> bytes:
        raise RuntimeError("broken")

    async with running(2, handler=broken) as (one, two):
        for _ in range(5):
            with pytest.raises(NetworkError):
                await one.network.ask(two.network.peer_id, b"?")
        await one.network.publish(b"alive")
        await two.until(lambda: two.frames == [b"alive"])


async def test_no_answer_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(peer: str, request: bytes) -> bytes:
        await trio.sleep_forever()
        return b""

    async with running(2, handler=never) as (one, two):
        requests = one.network._requests
        assert requests is not None
        with pytest.raises(NetworkError, match="within"):
            await requests.ask(ID.from_string(two.network.peer_id), b"?", deadline=0.1)


async def test_a_peer_that_asks_too_much_at_once_is_put_off() -> None:
    release = trio.Event()

    async def slow(peer: str, request: bytes) -> bytes:
        await release.wait()
        return b"done"

    answers: list[str] = []

    async with running(2, handler=slow) as (one, two):

        async def ask() -> None:
            try:
                answers.append((await one.network.ask(two.network.peer_id, b"?")).decode())
            except NetworkError:
                answers.append("refused")
                if answers.count("refused") == 3:
                    release.set()

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
    assert sorted(answers) == ["done", "done", "refused", "refused", "refused"]


async def test_asking_someone_who_is_not_there() -> None:
    async with running(1) as (one,):
        with pytest.raises(NetworkError):
            await one.network.ask(Libp2pNetwork(Seed("absent"), "test").peer_id, b"?")


# --- who may talk to whom


async def test_the_secret_keeps_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "HANDSHAKE_S", 1.0)
    async with trio.open_nursery() as nursery:
        inside = await start(nursery, "inside", secret="sesame")
        friend = await start(nursery, "friend", secret="sesame", join=inside.network.addresses)
        stranger = await start(nursery, "stranger", secret="guess", join=inside.network.addresses)
        nobody = await start(nursery, "nobody", join=inside.network.addresses)
        await inside.until(lambda: inside.network.neighbours == (friend.network.peer_id,))
        await friend.network.publish(b"between us")
        await inside.until(lambda: inside.frames == [b"between us"])
        await stranger.until(lambda: stranger.network.notices)
        await nobody.until(lambda: nobody.network.notices)
        assert stranger.events == nobody.events == []
        assert await inside.network.ask(friend.network.peer_id, b"?") == b"echo ?"
        nursery.cancel_scope.cancel()


async def test_another_swarm_hears_nothing() -> None:
    async with trio.open_nursery() as nursery:
        here = await start(nursery, "here")
        there = await start(nursery, "there", swarm="other", join=here.network.addresses)
        await there.until(lambda: here.network._swarm.connections)
        await here.network.publish(b"secret plans")
        friend = await start(nursery, "friend", join=here.network.addresses)
        await friend.until(lambda: friend.frames == [b"secret plans"])
        assert there.events == []
        nursery.cancel_scope.cancel()


# --- addresses


async def test_addresses_are_real_and_complete() -> None:
    async with trio.open_nursery() as nursery:
        node = await start(nursery, "node", listen=["0.0.0.0"])
        assert node.network.addresses
        assert not any("0.0.0.0" in a for a in node.network.addresses)
        assert all(a.endswith("/p2p/" + node.network.peer_id) for a in node.network.addresses)
        nursery.cancel_scope.cancel()


async def test_a_taken_port_and_a_foreign_address_fall_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with trio.open_nursery() as nursery:
            port = taken.getsockname()[1]
            node = await start(nursery, "node", port=port)
            assert str(port) in node.network.notices[0]
            assert f"/tcp/{port}/" not in node.network.addresses[0]
            lost = await start(nursery, "lost", listen=["203.0.113.1", "nonsense"])
            assert lost.network.addresses[0].startswith("/ip4/127.0.0.1/")
            assert len(lost.network.notices) == 3
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "address", ["", "nonsense", "/ip4/127.0.0.1/tcp/4001", "/ip4/1.2.3.4/udp/1/p2p/12D3KooW", "/p2p/x"]
)
async def test_malformed_addresses_are_refused(address: str) -> None:
    with pytest.raises(NetworkError, match="full address"):
        await Libp2pNetwork(Seed("node"), "test").connect(address)
    assert Libp2pNetwork(Seed("node"), "test", join=[address]).notices


async def test_an_address_without_anyone_is_a_notice_until_it_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with trio.open_nursery() as nursery:
        absent = Libp2pNetwork(Seed("later"), "test").peer_id
        node = await start(nursery, "node", join=[f"/ip4/127.0.0.1/tcp/{port}/p2p/{absent}"])
        await node.until(lambda: node.network.notices)
        later = await start(nursery, "later", port=port)
        await node.until(lambda: node.network.neighbours == (later.network.peer_id,))
        assert node.network.notices == ()
        nursery.cancel_scope.cancel()


async def test_a_slow_reader_loses_frames_but_not_arrivals() -> None:
    async with trio.open_nursery() as nursery:
        network = Libp2pNetwork(Seed("slow"), "test", mdns=False)
        send, receive = trio.open_memory_channel[object](0)
        with trio.fail_after(DEADLINE):
            await nursery.start(network.run, send, echo, lambda data: True)
        fast = await start(nursery, "fast", join=network.addresses)
        await fast.until(lambda: fast.network.neighbours)
        for number in range(1500):
            await fast.network.publish(b"%d" % number)
        await fast.until(lambda: network.dropped >= 400)
        other = await start(nursery, "other", join=network.addresses)
        await other.until(lambda: other.network.neighbours)
        joined = []
        with trio.fail_after(DEADLINE):
            while len(joined) < 2:
                event = await receive.receive()
                if type(event).__name__ == "Joined":
                    joined.append(event)
        nursery.cancel_scope.cancel()
