"""The in-memory network of a simulated swarm: traced, and aware of crashed and stopped peers."""

from __future__ import annotations

import random
from collections.abc import Callable

import trio

from swarmtui.peer.frames import SHARED
from swarmtui.peer.memory import Faults, MemoryHub, MemoryNetwork
from swarmtui.peer.network import Event, Frame, Joined, Left, NetworkError
from swarmtui.plan.ops import PeerId

from .post import Post
from .stopping import Stopper
from .trace import Trace


class Ether(MemoryHub):
    """A hub that traces what's said and asked."""

    def __init__(self, rng: random.Random, trace: Trace, stopper: Stopper, faults: Faults | None = None) -> None:
        super().__init__(rng, faults)
        self.trace = trace
        self.stopper = stopper
        self.post = Post()
        self.numbers: dict[PeerId, int] = {}
        """Which member a peer id belongs to."""
        self.mesh: dict[PeerId, list[PeerId]] = {}
        """Each peer's neighbours; empty: all are everybody's."""

    def network(self, peer_id: PeerId, queue: int = 1024) -> EtherNetwork:
        network = EtherNetwork(self, peer_id, queue)
        self._networks[peer_id] = network
        return network

    def number(self, peer_id: PeerId) -> int:
        return self.numbers.get(peer_id, -1)

    def knit(self, degree: int, rng: random.Random) -> None:
        """Make a mesh: a ring, so that it hangs together, and links by chance, about `degree` for each in all."""
        peers = list(self.numbers)
        links = {peer: {peers[number - 1]} for number, peer in enumerate(peers)}
        for peer in peers:
            links[peer].update(rng.sample(peers, max(0, degree // 2 - 1)))
        for peer in peers:
            for other in sorted(links[peer]):
                links[other].add(peer)
        self.mesh = {peer: sorted(found - {peer}) for peer, found in links.items()}

    def linked(self, a: PeerId, b: PeerId) -> bool:
        return (not self.mesh or b in self.mesh[a]) and super().linked(a, b)

    def near(self, peer: PeerId) -> list[PeerId]:
        """Those who may be its neighbours."""
        return self.mesh[peer] if self.mesh else self.running()

    def whisper(self, source: MemoryNetwork, target: PeerId, data: bytes) -> None:
        """Tell one peer alone what others will believe was told to all (hostile members do)."""
        self.trace.frame(self.number(source.peer_id), data, SHARED, self.number(target))
        if self.passes(source.peer_id, target):
            self._send(source, self._networks[target], Frame(data, source.peer_id))

    def _spread(self, source: MemoryNetwork, data: bytes) -> None:
        self.trace.frame(self.number(source.peer_id), data, SHARED)
        super()._spread(source, data)

    async def _ask(self, source: PeerId, target: PeerId, request: bytes) -> bytes:
        asked = f"asks {self.number(target)}"
        self.trace.note(self.number(source), asked, request, detail=f"{len(request)} bytes")
        answer = await super()._ask(source, target, request)
        self.trace.note(self.number(source), f"{asked}: answer", answer, detail=f"{len(answer)} bytes")
        return answer


class EtherNetwork(MemoryNetwork):
    """A node whose process can be killed and stopped."""

    def __init__(self, hub: Ether, peer_id: PeerId, queue: int) -> None:
        super().__init__(hub, peer_id, queue)
        self._ether = hub
        self._look_at = -1.0
        self._events: trio.MemorySendChannel[Event] | None = None
        self._waiting: list[Event] = []
        """What came while its process was stopped."""
        self.dead = False
        """Its process was killed: nothing leaves any more, though its tasks may still be unwinding."""
        self.to_publish: Callable[[bytes], None] | None = None
        """Called with each frame before it leaves; may kill the process."""
        self.published: Callable[[bytes], None] | None = None
        """Called with each frame when it has left."""

    async def publish(self, data: bytes) -> None:
        if self.to_publish is not None and not self.dead:
            self.to_publish(data)
        if not self.dead:
            await super().publish(data)
        if self.published is not None and not self.dead:
            self.published(data)

    async def ask(self, peer: PeerId, request: bytes) -> bytes:
        if self.dead:
            raise NetworkError("killed")
        return await super().ask(peer, request)

    async def _answer(self, source: PeerId, request: bytes) -> bytes:
        """Whoever asks a stopped peer waits as long as it's stopped, and gives up before the answer comes."""
        number = self._ether.number(self.peer_id)
        if self._ether.stopper.is_stopped(number):
            with trio.move_on_after(self._ether.faults.answer_s):
                await self._ether.stopper.gone_on(number)
        if self.dead or self._ether.stopper.is_stopped(number):
            raise NetworkError(f"{self.peer_id} doesn't answer")
        return await super()._answer(source, request)

    def _due(self, at: float, order: int, event: Event) -> None:
        self._ether.post.add(at, self._arrive, event)

    async def _deliver(self, events: trio.MemorySendChannel[Event]) -> None:
        self._events = events
        try:
            await trio.sleep_forever()
        finally:
            self._events = None

    def _arrive(self, event: Event) -> None:
        if self._ether.stopper.is_stopped(self._ether.number(self.peer_id)):
            self._waiting.append(event)
        elif self._events is not None and isinstance(event, Frame):
            self._take(self._events, event)
        elif self._events is not None:
            self._look(self._events)

    def go_on(self) -> None:
        """Its process runs again: take what has waited."""
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            self._arrive(event)

    def _look(self, events: trio.MemorySendChannel[Event]) -> None:
        for peer in self._ether.near(self.peer_id):
            linked = self._ether.linked(self.peer_id, peer)
            if linked != self._seen.get(peer, False):
                self._seen[peer] = linked
                self._put(events, Joined(peer) if linked else Left(peer))
        for peer in [
            peer for peer, joined in self._seen.items() if joined and not self._ether.linked(self.peer_id, peer)
        ]:
            self._seen[peer] = False
            self._put(events, Left(peer))

    def _see(self, after: float) -> None:
        """Once is enough for those that come and go in one moment: a start of a thousand peers is a million notices."""
        at = trio.current_time() + after
        if at != self._look_at:
            self._look_at = at
            self._due(at, self._ether._stamp(), Left(""))
