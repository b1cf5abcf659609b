"""What the network costs: CPU per delivered message, latency, idle CPU. Ours, and libp2p as it comes.

    python -m tests.benchmarks.network [--hosts 10] [--messages 200] [--rate 10] [--size 600] [--skip-stock]

CPU is that of the whole process, so of all hosts together, divided by (messages × receivers). Run it on a quiet
machine.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import math
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from libp2p import new_host
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub.gossipsub import GossipSub
from libp2p.pubsub.pubsub import Pubsub
from libp2p.tools.anyio_service import background_trio_service
from multiaddr import Multiaddr

from swarmtui.peer.libp2p import Libp2pNetwork
from swarmtui.peer.network import Event, Frame

Publish = Callable[[int, bytes], Awaitable[None]]
Got = Callable[[int, bytes], None]


class Seed:
    def __init__(self, number: int) -> None:
        self.seed = hashlib.sha256(f"benchmark {number}".encode()).digest()


async def no_answer(peer: str, request: bytes) -> bytes:
    return b""


@asynccontextmanager
async def tuned(hosts: int, got: Got) -> AsyncIterator[Publish]:
    networks = [Libp2pNetwork(Seed(i), "benchmark", mdns=False) for i in range(hosts)]

    async def drain(number: int, events: trio.MemoryReceiveChannel[Event]) -> None:
        async for event in events:
            if isinstance(event, Frame):
                got(number, event.data)

    async with trio.open_nursery() as nursery:
        for number, network in enumerate(networks):
            send, receive = trio.open_memory_channel[Event](100)
            await nursery.start(network.run, send, no_answer, lambda data: True)
            nursery.start_soon(drain, number, receive)
            for other in networks[:number]:
                await network.connect(other.addresses[0])
        while any(len(network.neighbours) < hosts - 1 for network in networks):  # noqa: ASYNC110
            await trio.sleep(0.02)

        async def publish(number: int, data: bytes) -> None:
            await networks[number].publish(data)

        yield publish
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def stock(hosts: int, got: Got) -> AsyncIterator[Publish]:
    """libp2p's own classes, with only what's needed to make them deliver."""
    topic = "benchmark"
    pubsubs: list[Any] = []

    async def node(number: int, task_status: trio.TaskStatus[None]) -> None:
        host = new_host(key_pair=create_new_key_pair(Seed(number).seed))
        router = GossipSub(
            protocols=["/meshsub/1.2.0", "/meshsub/1.1.0"],  # type: ignore[list-item]
            degree=6,
            degree_low=4,
            degree_high=12,
            heartbeat_interval=1,
            adaptive_gossip_enabled=False,
            spam_protection_enabled=False,
            eclipse_protection_enabled=False,
        )
        pubsub = Pubsub(host, router)
        async with (
            host.run([Multiaddr("/ip4/127.0.0.1/tcp/0")]),
            background_trio_service(pubsub),
            background_trio_service(router),
        ):
            await pubsub.wait_until_ready()
            subscription = await pubsub.subscribe(topic)
            pubsubs.append(pubsub)
            task_status.started()
            while True:
                message = await subscription.get()
                if message.from_id != host.get_id().to_bytes():
                    got(number, message.data)

    async with trio.open_nursery() as nursery:
        for number in range(hosts):
            await nursery.start(node, number)
            for other in pubsubs[:number]:
                await pubsubs[number].host.connect(info_from_p2p_addr(other.host.get_addrs()[0]))
        with trio.move_on_after(10):
            while any(len(p.peer_topics.get(topic, ())) < hosts - 1 for p in pubsubs):  # noqa: ASYNC110
                await trio.sleep(0.05)

        async def publish(number: int, data: bytes) -> None:
            await pubsubs[number].publish(topic, data)

        yield publish
        nursery.cancel_scope.cancel()
        for pubsub in pubsubs:
            pubsub.seen_messages.stop()


async def measure(name: str, kind: Any, options: argparse.Namespace) -> float:
    """Print one line; returns milliseconds of CPU per delivery."""
    sent: dict[bytes, float] = {}
    delays: list[float] = []

    def got(number: int, data: bytes) -> None:
        delays.append(time.perf_counter() - sent[data[:8]])

    async with kind(options.hosts, got) as publish:
        await trio.sleep(3)
        cpu, wall = time.process_time(), time.perf_counter()
        await trio.sleep(options.idle)
        idle = (time.process_time() - cpu) / (time.perf_counter() - wall)
        cpu = time.process_time()
        for number in range(options.messages):
            data = number.to_bytes(8, "big").ljust(options.size, b"x")
            sent[data[:8]] = time.perf_counter()
            await publish(number % options.hosts, data)
            await trio.sleep(1 / options.rate)
        await trio.sleep(2.5)
        used = time.process_time() - cpu - idle * (options.messages / options.rate + 2.5)
    expected = options.messages * (options.hosts - 1)
    ordered = sorted(delays) or [math.nan]
    per_delivery = 1000 * used / max(1, len(delays))
    p50, p99 = 1000 * statistics.median(ordered), 1000 * ordered[int(0.99 * (len(ordered) - 1))]
    print(
        f"{name:6} {options.hosts} hosts, {options.rate:g}/s of {options.size} B: "
        f"delivered {len(delays) / expected:7.2%}, CPU {per_delivery:5.2f} ms/delivery, "
        f"p50 {p50:6.1f} ms, p99 {p99:7.1f} ms, idle {idle:6.2%} of a core",
        flush=True,
    )
    return per_delivery


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=10)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--size", type=int, default=600)
    parser.add_argument("--idle", type=float, default=10, help="seconds to measure the idle CPU")
    parser.add_argument("--skip-stock", action="store_true")
    return parser.parse_args(arguments)


def main() -> None:
    options = options_of()
    logging.disable(logging.ERROR)
    if not options.skip_stock:
        trio.run(measure, "stock", stock, options)
    trio.run(measure, "tuned", tuned, options)


if __name__ == "__main__":
    main()
