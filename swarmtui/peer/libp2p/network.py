"""The network over libp2p: one host per peer, gossip on the swarm's topic, requests over streams of their own.

Who gets a strike: the neighbour that handed us the bad thing. Strict signing proves who made a message (`from`), but
an honest neighbour refuses what fails the validator and never passes it on, so whoever did is its origin or hostile.
`Frame.source` is therefore the neighbour that forwarded the frame, not its origin, and `strike(frame.source, …)` is
right only for what the validator would have refused too.
"""

from __future__ import annotations

import logging
import random
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import base58
import trio
from libp2p.peer.id import ID
from multiaddr import Multiaddr

from swarmtui.peer.libp2p.addresses import listenable, real_addresses, split_address
from swarmtui.peer.libp2p.dialler import Dialler
from swarmtui.peer.libp2p.discovery import Folder, Mdns, swarm_tag
from swarmtui.peer.libp2p.gossip import SafeGossip
from swarmtui.peer.libp2p.host import SafeSwarm, guarded, make_host
from swarmtui.peer.libp2p.mesh import LeanRouter
from swarmtui.peer.libp2p.requests import Requests
from swarmtui.peer.libp2p.strikes import Strikes
from swarmtui.peer.network import (
    MAX_FRAME_BYTES,
    Event,
    Frame,
    Handler,
    Joined,
    Left,
    NetworkError,
    Validator,
)
from swarmtui.plan.ops import PeerId

log = logging.getLogger(__name__)

LEAVE_S = 1.0
RENEW_S = 0.3
WAITING_FRAMES = 1000
"""Frames that wait for a busy peer; beyond it the oldest stay and new ones are dropped (repair brings them)."""
DIAL_S = 10.0

_local: dict[ID, Libp2pNetwork] = {}
"""The running networks of this process. A process can't be stopped in part, so they needn't watch each other for
silence; and when one ends, the others needn't redial it."""


class Key(Protocol):
    """What the network needs of an identity: its 32-byte Ed25519 seed."""

    @property
    def seed(self) -> bytes: ...


class Libp2pNetwork:
    """One node on the topic `swarmtui/1/<swarm name>`."""

    def __init__(
        self,
        identity: Key,
        swarm_name: str,
        *,
        listen: Sequence[str] = ("127.0.0.1",),
        port: int = 0,
        join: Sequence[str] = (),
        mdns: bool = True,
        secret: str = "",
        folder: Path | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """`listen`: IPs. `join`: full multiaddrs; malformed ones become a notice. `secret`: '' lets anyone in.

        `mdns` and `folder` (where the programs of this machine find each other) are for one network per process.
        """
        self._listen, self._port = tuple(listen), port
        self._topic = f"swarmtui/1/{swarm_name}"
        self._rng = rng or random.Random()
        self._strikes = Strikes(time.time, lambda at: time.strftime("%H:%M:%S", time.localtime(at)))
        self._host, self._swarm = make_host(identity.seed, secret, _local.__contains__)
        self._id = self._host.get_id()
        self._peer_id: PeerId = self._id.to_base58()
        self._dialler = Dialler(self._peer_id, self._dial, self._connected, self._rng)
        tag = swarm_tag(swarm_name, secret)
        self._mdns = Mdns(tag, self._peer_id) if mdns else None
        self._folder = Folder(folder, tag, self._peer_id) if folder is not None else None
        self._notices: list[str] = []
        self._addresses: list[str] = []
        self._present: dict[ID, PeerId] = {}
        self._waiting: deque[Event] = deque()
        self._something = trio.Event()
        self._gossip: SafeGossip | None = None
        self._requests: Requests | None = None
        self._validator: Validator = lambda data: False
        self._nursery: trio.Nursery | None = None
        self._joined: set[PeerId] = set()
        self._sent = 0
        self.dropped = 0
        """Frames dropped because the peer was too busy to take them."""
        for address in join:
            try:
                self._keep(address)
                self._joined.add(split_address(address)[0])
            except NetworkError as error:
                self._notices.append(str(error))

    @property
    def peer_id(self) -> PeerId:
        return self._peer_id

    @property
    def addresses(self) -> Sequence[str]:
        return tuple(self._addresses)

    @property
    def neighbours(self) -> Sequence[PeerId]:
        return tuple(self._present.values())

    @property
    def notices(self) -> Sequence[str]:
        finders = [finder.problem for finder in (self._mdns, self._folder) if finder is not None and finder.problem]
        return (*self._notices, *finders, *self._strikes.notices(), *self._dialler.problems.values())

    @property
    def sent(self) -> int:
        return self._sent

    # --- running

    async def run(
        self,
        events: trio.MemorySendChannel[Event],
        handler: Handler,
        validator: Validator,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Take part until cancelled. May be called once.

        Raises:
            NetworkError: not even a loopback address can be listened on.
        """
        self._validator = validator
        self._swarm.banned = self.banned
        self._swarm.gone = self._gone
        self._requests = Requests(self._host, handler, self.fault)
        router = LeanRouter()
        gossip = SafeGossip(self._host, router, self._topic, self)
        _local[self._id] = self
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(guarded(self._swarm))
                await self._start_listening(self._swarm)
                await stack.enter_async_context(guarded(gossip))
                await stack.enter_async_context(guarded(router))
                await gossip.wait_until_ready()
                self._gossip = gossip
                await gossip.announce()
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    nursery.start_soon(self._hand_over, events)
                    nursery.start_soon(self._dialler.run)
                    for finder in (self._mdns, self._folder):
                        if finder is not None:
                            nursery.start_soon(finder.run, self._addresses, self._found, self._dialler.lost)
                    task_status.started()
                    try:
                        await trio.sleep_forever()
                    finally:
                        self._nursery = None
                        # Without this the others notice only half a minute later that we're gone.
                        with trio.move_on_after(LEAVE_S, shield=True):
                            await self._host.close()
        finally:
            self._gossip = self._nursery = None
            if _local.get(self._id) is self:
                del _local[self._id]
            for other in _local.values():
                other._forget(self._id)

    async def _start_listening(self, swarm: SafeSwarm) -> None:
        for ip in self._listen:
            port, problem = listenable(ip, self._port)
            if problem:
                self._notices.append(problem)
            if port is not None and not await swarm.listen(Multiaddr(address_of(ip, port))):
                self._notices.append(f"Can't listen on {ip}. Choose another address with --listen.")
        if not swarm.listeners:
            if not await swarm.listen(Multiaddr(address_of("127.0.0.1", 0))):
                raise NetworkError("No address can be listened on, not even 127.0.0.1: is the network switched off?")
            self._notices.append("Only this machine can reach us: none of the addresses to listen on worked.")
        self._addresses = real_addresses([str(a) for a in self._host.get_transport_addrs()], self._peer_id)

    async def _hand_over(self, events: trio.MemorySendChannel[Event]) -> None:
        """Pass events on in order, however slowly they're taken."""
        try:
            while True:
                while self._waiting:
                    await events.send(self._waiting.popleft())
                self._something = trio.Event()
                await self._something.wait()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            log.debug("nobody takes events any more")

    def _emit(self, event: Event) -> None:
        self._waiting.append(event)
        self._something.set()

    # --- what a peer uses

    async def publish(self, data: bytes) -> None:
        """Gossip a frame. Lost when nobody is connected; repair brings it later.

        Raises:
            ValueError: more than MAX_FRAME_BYTES.
        """
        if len(data) > MAX_FRAME_BYTES:
            raise ValueError(f"a frame of {len(data)} bytes is too large")
        self._sent += 1
        if self._gossip is not None:
            await self._gossip.send(data)
        await trio.lowlevel.checkpoint()

    async def ask(self, peer: PeerId, request: bytes) -> bytes:
        """Raises NetworkError: the peer isn't connected, or gave no answer in time."""
        peer_id = ID(base58.b58decode(peer))
        if self._requests is None or not self._connected(peer):
            raise NetworkError("not connected")
        self._sent += 1
        return await self._requests.ask(peer_id, request)

    async def connect(self, address: str) -> None:
        """Dial an address in the background, again and again until it works and whenever it's lost.

        Raises:
            NetworkError: it isn't a full multiaddr with /tcp/ and /p2p/.
        """
        self._keep(address)
        await trio.lowlevel.checkpoint()

    def _forget(self, peer: ID) -> None:
        """A node of this process has ended: unless we were told to join it, it's not expected back."""
        if peer.to_base58() not in self._joined:
            self._dialler.forget(peer.to_base58())

    def strike(self, peer: PeerId, reason: str) -> None:
        """Count a fault of this neighbour; five in a minute shut it out for three minutes."""
        if self._strikes.add(peer, reason) and self._nursery is not None:
            log.warning("%s is shut out: %s", peer, reason)
            self._nursery.start_soon(self._swarm.hang_up, ID(base58.b58decode(peer)))

    # --- connections

    def _keep(self, address: str) -> None:
        peer, where = split_address(address)
        self._dialler.keep(peer, where, named=True)

    def _found(self, peer: PeerId, address: str) -> None:
        self._dialler.keep(peer, split_address(address)[1], named=False)

    async def _dial(self, peer: PeerId, where: str) -> None:
        if self._strikes.banned(peer):
            raise NetworkError("banned")
        with trio.fail_after(DIAL_S):
            # Not host.connect(): that waits a flat 250 ms for a second address, and remembers failures for a minute.
            await self._swarm.dial_addr(Multiaddr(where), ID(base58.b58decode(peer)))

    def _connected(self, peer: PeerId) -> bool:
        return any(not conn.is_closed for conn in self._swarm.connections.get(ID(base58.b58decode(peer)), ()))

    def _gone(self, peer: ID) -> None:
        """A peer's last connection has closed."""
        if self._gossip is not None:
            # At once: if it reconnects before libp2p's notice arrives, libp2p keeps the dead stream.
            self._gossip.lost(peer)
        self._leave(peer)
        self._dialler.changed(peer.to_base58())

    def _leave(self, peer: ID) -> None:
        name = self._present.pop(peer, None)
        if name is not None:
            self._emit(Left(peer=name))

    async def _renew(self, peer: ID) -> None:
        await trio.sleep(RENEW_S)
        if self._gossip is not None and not self._gossip.both_ways(peer):
            await self._swarm.hang_up(peer)

    # --- Receiver: what gossip tells us

    def valid(self, data: bytes) -> bool | None:
        try:
            return self._validator(data)
        except Exception:
            log.exception("the validator failed")
            return False

    def frame(self, data: bytes, forwarder: ID) -> None:
        if len(self._waiting) >= WAITING_FRAMES:
            self.dropped += 1
            return
        self._emit(Frame(data=data, source=forwarder.to_base58()))

    def subscribed(self, peer: ID) -> None:
        if peer not in self._present and self._swarm.connections.get(peer):
            self._present[peer] = peer.to_base58()
            self._emit(Joined(peer=peer.to_base58()))

    def unsubscribed(self, peer: ID) -> None:
        self._leave(peer)

    def fault(self, peer: ID, reason: str) -> None:
        self.strike(peer.to_base58(), reason)

    def suspect(self, peer: ID) -> None:
        if self._nursery is not None and self._swarm.connections.get(peer):
            self._nursery.start_soon(self._renew, peer)

    def banned(self, peer: ID) -> bool:
        return self._strikes.banned(peer.to_base58())


def address_of(ip: str, port: int) -> str:
    return f"/ip6/{ip}/tcp/{port}" if ":" in ip else f"/ip4/{ip}/tcp/{port}"
