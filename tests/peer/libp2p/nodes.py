"""Real nodes on loopback for the tests: honest ones, and a hostile one that can send anything."""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import trio
from libp2p.abc import INetStream
from libp2p.peer.id import ID
from multiaddr import Multiaddr

from swarmtui.peer.libp2p import Libp2pNetwork
from swarmtui.peer.libp2p.host import LeanHost, SafeSwarm, guarded, make_host
from swarmtui.peer.libp2p.mesh import MESHSUB
from swarmtui.peer.network import Event, Frame, Joined, Left

DEADLINE = 120.0
"""How long an event may take before a test fails. Far above what it takes, for slow machines."""


class Seed:
    """A key that depends on its name only."""

    def __init__(self, name: object) -> None:
        self.seed = hashlib.sha256(f"test {name}".encode()).digest()


class Node:
    """A running network and what it has told."""

    def __init__(self, network: Libp2pNetwork) -> None:
        self.network = network
        self.events: list[Event] = []
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self._changed = trio.lowlevel.ParkingLot()

    @property
    def frames(self) -> list[bytes]:
        return [event.data for event in self.events if isinstance(event, Frame)]

    @property
    def moves(self) -> list[tuple[str, str]]:
        """Joined and Left, in order."""
        return [(type(e).__name__, e.peer) for e in self.events if isinstance(e, (Joined, Left))]

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until it holds. Looks again at each event, and now and then."""
        with trio.fail_after(DEADLINE):
            while not condition():
                with trio.move_on_after(0.05):
                    await self._changed.park()

    async def collect(self, events: trio.MemoryReceiveChannel[Event]) -> None:
        async for event in events:
            self.events.append(event)
            self._changed.unpark_all()

    async def stop(self) -> None:
        self.scope.cancel()
        with trio.fail_after(DEADLINE):
            await self.ended.wait()


async def echo(peer: str, request: bytes) -> bytes:
    return b"echo " + request


async def start(
    nursery: trio.Nursery,
    name: object,
    *,
    handler: Any = echo,
    validator: Callable[[bytes], bool] = lambda data: not data.startswith(b"bad"),
    swarm: str = "test",
    **options: Any,
) -> Node:
    options.setdefault("mdns", False)
    node = Node(Libp2pNetwork(Seed(name), swarm, rng=random.Random(1), **options))
    send, receive = trio.open_memory_channel[Event](10)

    async def run(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        try:
            with node.scope:
                await node.network.run(send, handler, validator, task_status=task_status)
        finally:
            node.ended.set()
            send.close()

    with trio.fail_after(DEADLINE):
        await nursery.start(run)
    nursery.start_soon(node.collect, receive)
    return node


async def meet(nodes: Sequence[Node]) -> None:
    """Connect all with all and wait until they gossip."""
    for number, node in enumerate(nodes):
        for other in nodes[:number]:
            await node.network.connect(other.network.addresses[0])
    for node in nodes:
        await node.until(lambda node=node: len(node.network.neighbours) == len(nodes) - 1)


@asynccontextmanager
async def running(count: int, **options: Any) -> AsyncIterator[list[Node]]:
    """So many nodes, connected; all stopped at the end."""
    async with trio.open_nursery() as nursery:
        nodes = [await start(nursery, number, **options) for number in range(count)]
        await meet(nodes)
        yield nodes
        nursery.cancel_scope.cancel()


class Villain:
    """A host that has the swarm's key, if any, and sends what it likes."""

    def __init__(self, host: LeanHost, swarm: SafeSwarm) -> None:
        self.host, self.swarm = host, swarm
        self.peer_id = host.get_id().to_base58()

    async def reach(self, victim: Node) -> ID:
        where = Multiaddr(victim.network.addresses[0])
        peer = ID.from_string(victim.network.peer_id)
        if not self.swarm.connections.get(peer):
            await self.swarm.dial_addr(where, peer)
        return peer

    async def stream(self, victim: Node, protocol: Any = MESHSUB) -> INetStream:
        with trio.fail_after(DEADLINE):
            return await self.host.new_stream(await self.reach(victim), [protocol])

    async def send(self, victim: Node, data: bytes, protocol: Any = MESHSUB) -> None:
        """Send bytes on a fresh stream and wait until the victim has closed it."""
        stream = await self.stream(victim, protocol)
        with trio.fail_after(DEADLINE):
            try:
                await stream.write(data)
                while await stream.read(65536):
                    pass
            except Exception:
                return


@asynccontextmanager
async def villain(name: object = "villain", secret: str = "") -> AsyncIterator[Villain]:
    host, swarm = make_host(Seed(name).seed, secret, lambda peer: False)
    host.set_stream_handler(MESHSUB, swallow)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(guarded(swarm))
        try:
            yield Villain(host, swarm)
        finally:
            with trio.move_on_after(2, shield=True):
                await host.close()


async def swallow(stream: INetStream) -> None:
    while await stream.read(65536):
        pass
