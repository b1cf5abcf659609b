"""A network in memory, with faults: for tests and simulation under trio's MockClock.

Every peer on the hub is every other's neighbour. The hub loses, doubles, delays and reorders frames and requests, cuts
links (also one way) and takes peers down, all from one random source: the same seed gives the same run (within
:func:`reproducible`).
"""

from __future__ import annotations

import contextlib
import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import trio

from swarmtui.plan.ops import PeerId

from .network import (
    MAX_ANSWER_BYTES,
    MAX_FRAME_BYTES,
    Event,
    Frame,
    Handler,
    Joined,
    Left,
    NetworkError,
    Validator,
)

MAX_REQUEST_BYTES = 256 * 1024
"""As over libp2p."""
BAN_AFTER = 20
BAN_S = 60.0


@dataclass
class Faults:
    """What the hub does to traffic. May be changed at any time."""

    loss: float = 0.0
    """Probability that a frame, a request or an answer is lost."""
    duplicate: float = 0.0
    """Probability that it comes twice."""
    delay: tuple[float, float] = (0.001, 0.02)
    """Shortest and longest way, in seconds."""
    reorder: float = 0.0
    """Probability that a frame ignores the order of its link and takes up to ten times as long."""
    notice_s: float = 1.0
    """How long a cut, a crash or a healing stays unnoticed before neighbours see Left or Joined."""
    answer_s: float = 10.0
    """A request that is lost fails after so long."""


@dataclass
class Traffic:
    """What a peer put on the wire and what became of what it should have got."""

    published: int = 0
    asked: int = 0
    answered: int = 0
    received: int = 0
    rejected: int = 0
    """Frames that its validator refused."""
    overflowed: int = 0
    """Frames dropped because it didn't take them fast enough."""
    bytes_out: int = 0
    strikes: Counter[PeerId] = field(default_factory=Counter)


def _uncut(source: PeerId, target: PeerId) -> bool:
    return False


class MemoryHub:
    """The ether between :class:`MemoryNetwork`s."""

    def __init__(self, rng: random.Random, faults: Faults | None = None) -> None:
        self.rng = rng
        self.faults = faults or Faults()
        self._networks: dict[PeerId, MemoryNetwork] = {}
        self._blocked: Callable[[PeerId, PeerId], bool] = _uncut
        self._down: set[PeerId] = set()
        self._order = 0

    def network(self, peer_id: PeerId, queue: int = 1024) -> MemoryNetwork:
        """A node for this peer. A second call for the same peer (a restart) takes the place of the first."""
        network = MemoryNetwork(self, peer_id, queue)
        self._networks[peer_id] = network
        return network

    def traffic(self, peer_id: PeerId) -> Traffic:
        return self._networks[peer_id].traffic

    def cut(self, blocked: Callable[[PeerId, PeerId], bool]) -> None:
        """Block the links for which `blocked(source, target)` is true; anything else is open again."""
        self._blocked = blocked
        self._relink()

    def heal(self) -> None:
        """Open every link."""
        self.cut(_uncut)

    def down(self, peer_id: PeerId) -> None:
        """Cut a peer off from everybody, as a pulled cable does (and a crash: then end its `run` as well)."""
        self._down.add(peer_id)
        self._relink()

    def up(self, peer_id: PeerId) -> None:
        self._down.discard(peer_id)
        self._relink()

    def passes(self, source: PeerId, target: PeerId) -> bool:
        """Whether a message can go this way now."""
        there = self._networks.get(target)
        return (
            there is not None
            and there.running
            and source != target
            and source not in self._down
            and target not in self._down
            and not self._blocked(source, target)
        )

    def linked(self, a: PeerId, b: PeerId) -> bool:
        """Whether two peers keep a connection, which needs both ways."""
        return self.passes(a, b) and self.passes(b, a)

    def inject(self, source: PeerId, target: PeerId, data: bytes) -> None:
        """Put raw bytes on a link, past every check of size and every fault."""
        self._networks[target]._due(trio.current_time() + self.faults.delay[0], self._stamp(), Frame(data, source))

    def running(self) -> list[PeerId]:
        return [peer for peer, network in self._networks.items() if network.running]

    def _stamp(self) -> int:
        self._order += 1
        return self._order

    def _way(self) -> float:
        least, most = self.faults.delay
        return least + (most - least) * self.rng.random()

    def _lost(self) -> bool:
        return self.faults.loss > 0 and self.rng.random() < self.faults.loss

    def _relink(self) -> None:
        for peer in self.running():
            self._networks[peer]._see(self.faults.notice_s)

    def _spread(self, source: MemoryNetwork, data: bytes) -> None:
        frame = Frame(data, source.peer_id)
        for target in self.running():
            if not self.passes(source.peer_id, target):
                continue
            copies = 2 if self.faults.duplicate and self.rng.random() < self.faults.duplicate else 1
            for _ in range(copies):
                if not self._lost():
                    self._send(source, self._networks[target], frame)

    def _send(self, source: MemoryNetwork, target: MemoryNetwork, frame: Frame) -> None:
        due = trio.current_time() + self._way()
        if self.faults.reorder and self.rng.random() < self.faults.reorder:
            due += self.rng.uniform(0, 10 * self.faults.delay[1])
        else:
            due = max(due, source._last_due.get(target.peer_id, 0.0))
            source._last_due[target.peer_id] = due
        target._due(due, self._stamp(), frame)

    async def _ask(self, source: PeerId, target: PeerId, request: bytes) -> bytes:
        """Carry a request there and its answer back."""
        deadline = trio.current_time() + self.faults.answer_s
        await trio.sleep(self._way())
        lost = self._lost() or not self.passes(source, target)
        if not lost:
            there = self._networks[target]
            if self.faults.duplicate and self.rng.random() < self.faults.duplicate:
                await there._answer(source, request)
            answer = await there._answer(source, request)
            await trio.sleep(self._way())
            if not self._lost() and self.passes(target, source):
                return answer
        await trio.sleep_until(deadline)
        raise NetworkError(f"no answer from {target}")


class MemoryNetwork:
    """One node on a :class:`MemoryHub` (see :class:`swarmtui.peer.network.Network`)."""

    def __init__(self, hub: MemoryHub, peer_id: PeerId, queue: int) -> None:
        self._hub = hub
        self._peer_id = peer_id
        self._queue = queue
        self._inbox: list[tuple[float, int, Event]] = []
        self._arrived = trio.Event()
        self._last_due: dict[PeerId, float] = {}
        self._seen: dict[PeerId, bool] = {}
        self._banned: dict[PeerId, float] = {}
        self._validator: Validator | None = None
        self._handler: Handler | None = None
        self.traffic = Traffic()
        self.running = False

    @property
    def peer_id(self) -> PeerId:
        return self._peer_id

    @property
    def addresses(self) -> Sequence[str]:
        return ()

    @property
    def neighbours(self) -> Sequence[PeerId]:
        return sorted(peer for peer, joined in self._seen.items() if joined)

    @property
    def notices(self) -> Sequence[str]:
        return ()

    @property
    def sent(self) -> int:
        return self.traffic.published + self.traffic.asked

    async def run(
        self,
        events: trio.MemorySendChannel[Event],
        handler: Handler,
        validator: Validator,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        self._handler, self._validator = handler, validator
        self.running = True
        self._tell_all(self._hub.faults.delay[1])
        task_status.started()
        try:
            async with events:
                await self._deliver(events)
        finally:
            self.running = False
            self._tell_all(self._hub.faults.delay[1])

    async def publish(self, data: bytes) -> None:
        if len(data) > MAX_FRAME_BYTES:
            raise ValueError(f"a frame of {len(data)} bytes is over {MAX_FRAME_BYTES}")
        self.traffic.published += 1
        self.traffic.bytes_out += len(data)
        if self.running:
            self._hub._spread(self, data)
        await trio.lowlevel.checkpoint()

    async def ask(self, peer: PeerId, request: bytes) -> bytes:
        self.traffic.asked += 1
        self.traffic.bytes_out += len(request)
        if len(request) > MAX_REQUEST_BYTES:
            raise NetworkError(f"a request of {len(request)} bytes is over {MAX_REQUEST_BYTES}")
        return await self._hub._ask(self._peer_id, peer, request)

    async def connect(self, address: str) -> None:
        """Everybody on the hub is connected already."""
        await trio.lowlevel.checkpoint()

    def strike(self, peer: PeerId, reason: str) -> None:
        self.traffic.strikes[peer] += 1
        if self.traffic.strikes[peer] % BAN_AFTER == 0:
            self._banned[peer] = trio.current_time() + BAN_S

    async def _answer(self, source: PeerId, request: bytes) -> bytes:
        handler = self._handler
        if handler is None or not self.running:
            raise NetworkError(f"{self._peer_id} isn't there")
        try:
            answer = await handler(source, request)
        except Exception as error:
            raise NetworkError(f"{self._peer_id} refused: {error}") from error
        if len(answer) > MAX_ANSWER_BYTES:
            raise NetworkError(f"an answer of {len(answer)} bytes is over {MAX_ANSWER_BYTES}")
        self.traffic.answered += 1
        return answer

    def _tell_all(self, after: float) -> None:
        self._see(after)
        for peer in self._hub.running():
            if peer != self._peer_id:
                self._hub._networks[peer]._see(after)

    def _see(self, after: float) -> None:
        """Look, after a while, who is linked (a Left stands for 'look again')."""
        self._due(trio.current_time() + after, self._hub._stamp(), Left(""))

    def _due(self, at: float, order: int, event: Event) -> None:
        heapq.heappush(self._inbox, (at, order, event))
        self._arrived.set()

    async def _deliver(self, events: trio.MemorySendChannel[Event]) -> None:
        while True:
            self._arrived = trio.Event()
            now = trio.current_time()
            while self._inbox and self._inbox[0][0] <= now:
                event = heapq.heappop(self._inbox)[2]
                if isinstance(event, Frame):
                    self._take(events, event)
                else:
                    self._look(events)
            wait = self._inbox[0][0] - now if self._inbox else float("inf")
            with trio.move_on_after(wait):
                await self._arrived.wait()

    def _take(self, events: trio.MemorySendChannel[Event], frame: Frame) -> None:
        if self._banned.get(frame.source, 0.0) > trio.current_time():
            return
        verdict = self._verdict(frame.data)
        if not verdict:
            self.traffic.rejected += 1
            if verdict is False:
                self.strike(frame.source, "invalid frame")
            return
        self.traffic.received += 1
        self._put(events, frame)

    def _verdict(self, data: bytes) -> bool | None:
        try:
            return self._validator(data) if self._validator is not None else None
        except Exception:
            return False

    def _look(self, events: trio.MemorySendChannel[Event]) -> None:
        peers = [*self._hub.running(), *(p for p, joined in self._seen.items() if joined)]
        for peer in dict.fromkeys(peers):
            linked = self._hub.linked(self._peer_id, peer)
            if linked != self._seen.get(peer, False):
                self._seen[peer] = linked
                self._put(events, Joined(peer) if linked else Left(peer))

    def _put(self, events: trio.MemorySendChannel[Event], event: Event) -> None:
        try:
            events.send_nowait(event)
        except (trio.WouldBlock, trio.BrokenResourceError):
            self.traffic.overflowed += 1


@contextlib.contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Make trio schedule tasks the same way in every run within this context (enter it before `trio.run`).

    trio shuffles the tasks that are ready on purpose; this is the switch that its Hypothesis support uses.
    """
    from trio._core import _run as module

    _run: Any = module
    old = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r
    _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r = True, random.Random(seed)
    try:
        yield
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r = old
