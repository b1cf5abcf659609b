"""Our node and libp2p's own classes understand each other: our yamux and gossip are on the wire what the specs say."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from libp2p import new_host
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.peer.id import ID
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub.gossipsub import GossipSub
from libp2p.pubsub.pubsub import Pubsub
from libp2p.tools.anyio_service import background_trio_service
from multiaddr import Multiaddr

from swarmtui.peer.libp2p.host import network_key
from swarmtui.peer.libp2p.requests import PROTOCOL

from .nodes import DEADLINE, Seed, start


@pytest.mark.parametrize("secret", ["", "sesame"])
@pytest.mark.parametrize("we_dial", [True, False])
async def test_a_stock_node_takes_part(we_dial: bool, secret: str) -> None:
    stock: Any = new_host(key_pair=create_new_key_pair(Seed("stock").seed), psk=network_key(secret) if secret else None)
    router = GossipSub(protocols=["/meshsub/1.1.0"], degree=4, degree_low=3, degree_high=6, heartbeat_interval=1)  # type: ignore[list-item]
    pubsub = Pubsub(stock, router)
    try:
        async with trio.open_nursery() as nursery:
            ours = await start(nursery, "ours", secret=secret)
            me = ID.from_string(ours.network.peer_id)
            async with (
                stock.run([Multiaddr("/ip4/127.0.0.1/tcp/0")]),
                background_trio_service(pubsub),
                background_trio_service(router),
            ):
                await pubsub.wait_until_ready()
                subscription = await pubsub.subscribe("swarmtui/1/test")
                if we_dial:
                    await ours.network.connect(str(stock.get_addrs()[0]))
                else:
                    await stock.connect(info_from_p2p_addr(Multiaddr(ours.network.addresses[0])))
                await ours.until(lambda: ours.network.neighbours == (stock.get_id().to_base58(),))
                with trio.fail_after(DEADLINE):
                    await pubsub.wait_for_subscription(me, "swarmtui/1/test", timeout=DEADLINE)
                    await ours.network.publish(b"x" * 100_000)
                    assert (await subscription.get()).data == b"x" * 100_000
                    await pubsub.publish("swarmtui/1/test", b"y" * 100_000)
                    await ours.until(lambda: ours.frames == [b"y" * 100_000])
                    stream = await stock.new_stream(me, [PROTOCOL])
                    await stream.write(b"\0\0\0\x01?")
                    answer = b""
                    while len(answer) < 10:
                        answer += await stream.read(10)
                    assert answer == b"\0\0\0\x06echo ?"
                    await stock.close()
                await ours.until(lambda: not ours.network.neighbours)
            nursery.cancel_scope.cancel()
    finally:
        pubsub.seen_messages.stop()
