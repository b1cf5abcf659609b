"""What a peer puts on the topic: its own ops in bundles, and others' ops again for those who can't ask.

An agent that is new or has missed something repairs itself. A pure listener can't: it never speaks. So a neighbour that
sees a newcomer publishes the whole set after a short random wait, without what somebody else has published meanwhile
(several neighbours thus share the work), and agents take turns to publish the log again, slowly (the carousel).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable

import trio

from swarmtui.plan.ops import Op, PeerId

from .frames import bundles, put_together
from .network import Network
from .presence import Presences
from .store import Store

log = logging.getLogger(__name__)

BUNDLE_S = 0.005
"""Ops said within this time travel together."""
PUSH_WAIT_S = (1.0, 3.0)
"""Before a newcomer is told everything: an agent shows by then that it repairs itself."""
PUSH_PAUSE_S = (0.1, 0.3)
"""Between two bundles."""
PUSH_GAP_S = 10.0
"""Between two such tellings by one peer, so that somebody who comes and goes can't make us shout."""
PUSH_GAP_PER_PEER_S = 30.0
CAROUSEL_S = 8.0
"""The whole swarm publishes a bundle about so often …"""
CAROUSEL_IDLE_S = 40.0
"""… and so often once all have had the same for a while, and everything was told again since."""
CAROUSEL_BYTES = 64 * 1024
IDLE_AFTER_S = 60.0


class Spread:
    """Publishes frames."""

    def __init__(self, store: Store, network: Network, presences: Presences, rng: random.Random) -> None:
        self._store = store
        self._network = network
        self._presences = presences
        self._rng = rng
        self._outbox: list[Op] = []
        self._said = trio.Event()
        self._newcomers: list[PeerId] = []
        self._came = trio.Event()
        self._pushed: dict[PeerId, float] = {}
        self._same: tuple[bytes, float] | None = None
        """The fingerprint that all had when last looked at, and since when."""

    def say(self, ops: Iterable[Op]) -> None:
        """Publish own ops within milliseconds."""
        self._outbox += ops
        self._said.set()

    def greet(self, peer: PeerId) -> None:
        """A peer has subscribed: see to it that it gets everything."""
        now = trio.current_time()
        if peer in self._newcomers or now - self._pushed.get(peer, -PUSH_GAP_PER_PEER_S) < PUSH_GAP_PER_PEER_S:
            return
        self._newcomers.append(peer)
        if self._store.repeats is None:
            self._store.repeats = set()
        self._came.set()

    async def run_outbox(self) -> None:
        """Publish what was said, until cancelled."""
        while True:
            await self._said.wait()
            await trio.sleep(BUNDLE_S)
            await self.flush()

    async def flush(self) -> None:
        """Publish what was said, now."""
        self._said = trio.Event()
        ops, self._outbox = self._outbox, []
        self._store.counters.ops_out += len(ops)
        self._store.note_told(ops)
        for bundle in bundles(ops):
            await self.publish(put_together(bundle))

    async def publish(self, frame: bytes) -> None:
        """Publish a frame; a network that refuses it is logged."""
        try:
            await self._network.publish(frame)
        except Exception:
            self._store.counters.errors += 1
            log.exception("a frame of %d bytes wasn't published", len(frame))
            return
        self._store.counters.frames_out += 1
        self._store.counters.bytes_out += len(frame)

    async def run_greetings(self) -> None:
        """Tell newcomers everything, until cancelled."""
        while True:
            await self._came.wait()
            await trio.sleep(self._rng.uniform(*PUSH_WAIT_S))
            self._came = trio.Event()
            silent = [peer for peer in self._newcomers if peer not in self._presences.heard]
            self._newcomers.clear()
            now = trio.current_time()
            self._pushed = {p: at for p, at in self._pushed.items() if now - at < PUSH_GAP_PER_PEER_S}
            if silent:
                self._pushed.update((peer, now) for peer in silent)
                await self._tell_all()
            self._store.repeats = set() if self._newcomers else None
            if silent:
                await trio.sleep(PUSH_GAP_S)

    async def _tell_all(self) -> None:
        """Publish every op that nobody else publishes meanwhile."""
        for bundle in bundles(list(self._store.replica.ops())):
            heard = self._store.repeats or ()
            missing = [op for op in bundle if op.id not in heard]
            if missing:
                await self._republish(missing)
                await trio.sleep(self._rng.uniform(*PUSH_PAUSE_S))

    async def run_carousel(self) -> None:
        """Publish the log again and again, slowly, in turns with the other agents, until cancelled."""
        while True:
            pace = CAROUSEL_IDLE_S if self._idle() else CAROUSEL_S
            agents = 1 + len(self._presences.heard)
            await trio.sleep(pace * agents * self._rng.uniform(0.5, 1.5))
            bundle = self._next_turn()
            if bundle:
                await self._republish(bundle)

    def _next_turn(self) -> list[Op]:
        """What wasn't told for the longest time, earliest first; what never was, as far as we know, before all else.

        Agents hear each other's turns, so together they go through the whole log before they begin again, without a
        word about who tells what.
        """
        told = self._store.told
        ops = sorted(self._store.replica.ops(), key=lambda op: told.get(op.id, 0.0))
        return next(bundles(ops, CAROUSEL_BYTES), [])

    async def _republish(self, bundle: list[Op]) -> None:
        self._store.counters.republished += len(bundle)
        self._store.note_told(bundle)
        await self.publish(put_together(bundle))

    def _idle(self) -> bool:
        """Whether all heard have had what we have for a while, and it was all told since: listeners could hear it."""
        now = trio.current_time()
        ours = self._store.replica.fingerprint
        if any(heard.presence.fingerprint != ours for heard in self._presences.heard.values()):
            self._same = None
            return False
        if self._same is None or self._same[0] != ours:
            self._same = (ours, now)
        since = self._same[1]
        told = self._store.told
        return now - since > IDLE_AFTER_S and all(told.get(op.id, 0.0) >= since for op in self._store.replica.ops())
