"""A peer: one identity, one replica of the plans, one node on the network (docs/protocol.md, sections 4 and 5).

It knows nothing of libp2p and nothing of what agents do. It runs the same over libp2p and in memory, under trio's real
clock and under MockClock. Nothing that comes from the network ends it: each frame, request and event is handled under
one catch, counted in `counters`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

import trio

from swarmtui.plan.clock import HybridClock
from swarmtui.plan.envelope import Identity, seal
from swarmtui.plan.ops import Body, Goal, InvalidOp, Op, OpId, PeerId
from swarmtui.plan.replica import Replica
from swarmtui.plan.state import Changes

from .beat import beat
from .frames import SHARED, Opener
from .herald import Herald
from .intake import Intake
from .journal import Journal
from .limits import Counters
from .network import Event, Frame, Joined, Left, Network, NetworkError
from .presence import INTERVAL_S, Card, Heard, Presence, Presences
from .recall import Recall
from .repair import Refused, Repair
from .settle import Settling
from .spread import Spread
from .store import Held, Store
from .watch import Watch

__all__ = ["Card", "Heard", "Held", "Peer", "Presence", "Watch"]

log = logging.getLogger(__name__)

EVENTS = 256
"""Events that may wait for the peer; beyond it the network drops frames."""
JOURNAL_S = 0.25
"""Others' ops reach the disk within this time (own ones before they're published)."""
TICK_S = 1.0
STOPPED_S = 3.0
"""A tick so late means that this process was stopped."""
LEAVE_S = 1.0
GOODBYE_S = 0.2
"""For the goodbye to be on its way before the network closes."""


class Peer:
    """One peer of the swarm. Run it, then speak and listen through it."""

    def __init__(
        self,
        identity: Identity,
        network: Network,
        *,
        now_ms: Callable[[], int],
        rng: random.Random,
        journal: Journal | None = None,
        silent: bool = False,
        card: Card,
        fresh: bool = False,
        plans: Collection[OpId] | None = None,
        opener: Opener = SHARED,
        beat_s: float | None = None,
    ) -> None:
        """
        Args:
            identity: its key; only one peer in the world may use it.
            network: a node that nothing else uses.
            now_ms: the wall clock, unix milliseconds.
            rng: its only source of chance.
            journal: where ops are kept between runs; None: nowhere. May be shared by the peers of one swarm.
            silent: publish nothing, ask nothing, answer nothing (an observer).
            card: what it says of itself.
            fresh: the identity was made just now, so it can't have spoken before (see settle.py).
            plans: the only plans to take from the journal at the start (see recall.py); None: all.
            opener: checks ops; remembers what it has checked.
            beat_s: the phase of what it does regularly (see beat.py). Peers of one program that have the same speak
                in the same moment, and the network sends together what they say. None: one of its own.
        """
        self.identity = identity
        self.network = network
        self.now_ms = now_ms
        self.card = card
        self.silent = silent
        self.abrupt = False
        """Set before cancelling `run` to end without a goodbye."""
        self.counters = Counters()
        self.clock = HybridClock(now_ms)
        self.replica = Replica()
        self._rng = rng
        self._journal = journal
        self._watches: list[Watch] = []
        self._presences = Presences(identity.peer_id, now_ms)
        self._store = Store(
            identity.peer_id,
            self.replica,
            self.clock,
            journal,
            self.counters,
            opener,
            self._changed,
            self._presences.heard.__contains__,
        )
        self._recall = Recall(self._store, journal, plans)
        self._spread = Spread(self._store, network, self._presences, rng)
        self._repair = Repair(self._store, network, self._presences, rng)
        self._settling = Settling(
            fresh,
            lambda: journal is not None and journal.damaged,
            self._store,
            network,
            self._presences.heard,
            self._repair,
        )
        self._repair.agreed = self._settling.agreed
        self._intake = Intake(self._store, network, self._presences, self._heard)
        self._beat_s = rng.uniform(0.0, INTERVAL_S) if beat_s is None else beat_s
        self._herald = Herald(identity, card, self._store, self._spread, self._presences, now_ms, rng, self._beat_s)
        self._ticked = 0.0

    # --- what it knows

    @property
    def peer_id(self) -> PeerId:
        return self.identity.peer_id

    @property
    def said(self) -> int:
        """Own ops published in this run."""
        return self._herald.said

    @property
    def presences(self) -> Mapping[PeerId, Heard]:
        """The latest presence of each peer that isn't gone. Without ourselves."""
        return self._presences.heard

    @property
    def held(self) -> Sequence[Held]:
        """Ops that wait for their time, with how far their authors' clocks are ahead now."""
        return [Held(op, self.clock.ahead_ms(op.hlc)) for op in self._store.holding]

    @property
    def complete(self) -> bool:
        """Whether what we hold equals what two other living peers say they hold (or all, if there are fewer)."""
        now = self._now()
        theirs = [h.presence.fingerprint for h in self.presences.values() if now - h.at <= h.patience_s]
        same = theirs.count(self.replica.fingerprint)
        return bool(theirs) and same >= min(2, len(theirs))

    @property
    def notices(self) -> Sequence[str]:
        """What a person should know of this peer, each with its remedy. The network has its own."""
        notices = [self._presences.clock_notice()]
        if self._journal is not None:
            notices += [*self._journal.notices, self._journal.degraded]
        if self._store.own_from_outside:
            notices.append(
                f"{self.card.name or self.peer_id} hears itself say what it didn't say: another program uses its key, "
                "or its journal was lost. End the other program, or start this one with a new key."
            )
        notices += [f"Ops were refused: {reason}. What this peer shows may differ." for reason in self.replica.refused]
        return [notice for notice in notices if notice]

    def silent_too_long(self, peer: PeerId) -> bool:
        """Whether a presence that was expected has failed to come (true long before the peer is dropped)."""
        heard = self.presences.get(peer)
        return heard is None or self._now() - heard.at > heard.patience_s / 2

    def _now(self) -> float:
        """Our clock, as far as we have been awake: if this process was stopped, the others weren't silent."""
        return min(trio.current_time(), self._ticked + TICK_S + STOPPED_S)

    # --- what it does

    def show(self, doing: str, subject: str = "", tokens_per_second: float = 0.0) -> None:
        """Say by presence what it's doing now; sent soon, changes within a second together."""
        self._herald.show(doing, subject, tokens_per_second)

    def introduce(self, card: Card) -> None:
        """Say by presence that it's something else now, e.g. uses another model."""
        self.card = card
        self._herald.introduce(card)

    def watch(self, presence: bool = False) -> Watch:
        """Watch for changes from now on, also of presences if asked."""
        watch = Watch(presence, self._watches.remove)
        self._watches.append(watch)
        return watch

    async def say(self, plan_id: OpId, *bodies: Body) -> list[Op]:
        """Say something in a plan, or start one (a Goal, with plan_id=b"").

        The ops are signed, folded and on disk when this returns, and published within milliseconds. A restarted
        identity may have to wait for its neighbours first. Cancelled, it has said all or nothing.

        Raises:
            InvalidOp: a body is outside its limits.
            ValueError: the plan isn't known, the replica refuses more from this author, or the peer is silent.
        """
        if self.silent:
            raise ValueError("a silent peer says nothing")
        if plan_id and plan_id not in self.replica.plans:
            raise ValueError("that plan isn't known here")
        await self.settled(plan_id)
        ops = self._seal(plan_id, bodies)
        if not self._store.say(ops):
            raise ValueError("this peer has said as much as a replica keeps of one author")
        for op in ops:
            self._settling.settled(op.plan)
            self._store.spoken.add(op.plan)
        self._herald.said += len(ops)
        self._spread.say(ops)
        await trio.lowlevel.checkpoint()
        return ops

    def take(self, ops: Iterable[Op]) -> int:
        """Take ops that another peer of this program holds. Returns how many were new and are kept."""
        return self._store.take(ops, limited=False)

    def take_up(self, plan_id: OpId) -> None:
        """Take a plan from the journal, soon, that wasn't among those taken at the start."""
        self._recall.met([plan_id])

    def holds(self, op_id: OpId) -> bool:
        """Whether it has this op, be it that it holds it back for its time."""
        return self._store.find(op_id) is not None

    async def settled(self, plan_id: OpId) -> None:
        """Wait until this peer may speak in a plan: after a restart or a stop it first hears what it has missed.

        Who decides what to say should wait before: what comes meanwhile may have made it pointless.
        """
        if trio.current_time() - self._ticked > TICK_S + STOPPED_S:
            self._look_at_clock()
        if plan_id:
            await self._settling.wait(plan_id)

    def _seal(self, plan_id: OpId, bodies: Sequence[Body]) -> list[Op]:
        seq = max(self.replica.next_seq(plan_id, self.peer_id), self._store.next_own.get(plan_id, 0)) if plan_id else 0
        ops = []
        for body in bodies:
            if isinstance(body, Goal) is bool(plan_id):
                raise InvalidOp("a goal starts a plan, anything else belongs to one")
            ops.append(seal(self.identity, plan_id, seq, self.clock.tick(), body))
            seq += bool(plan_id)
        return ops

    def _changed(self, changes: Changes) -> None:
        if changes:
            for watch in self._watches:
                watch.tell(changes)
            self._recall.met(changes.plans)

    def _presence_changed(self) -> None:
        for watch in self._watches:
            if watch.presence:
                watch.tell(Changes())

    # --- running

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Load the journal, join the network, go on until cancelled; then say goodbye (unless `abrupt`).

        Raises:
            NetworkError: the network can't be joined, or has ended.
        """
        self._ticked = trio.current_time()
        await self._recall.start()
        send, receive = trio.open_memory_channel[Event](EVENTS)
        network_scope = trio.CancelScope()
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._run_network, network_scope, send)
                # From here on the network outlives a cancellation, so that there's somebody to say goodbye to.
                network_scope.shield = True
                try:
                    async with trio.open_nursery() as tasks:
                        self._start_tasks(tasks, receive)
                        task_status.started()
                finally:
                    if not self.abrupt:
                        with trio.move_on_after(LEAVE_S, shield=True):
                            await self._leave()
                    network_scope.cancel()
        finally:
            if self._journal is not None:
                self._store.flush()
                self._journal.close()

    async def _run_network(
        self,
        scope: trio.CancelScope,
        events: trio.MemorySendChannel[Event],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        with scope:
            await self.network.run(events, self._answer, self._intake.valid, task_status=task_status)
        if not scope.cancel_called:
            raise NetworkError("the network has ended")

    def _start_tasks(self, tasks: trio.Nursery, receive: trio.MemoryReceiveChannel[Event]) -> None:
        services: list[Callable[[], Awaitable[None]]] = [partial(self._receive, receive), self._tick]
        if self._journal is not None:
            services += [self._write, self._recall.run]
        if not self.silent:
            services += [self._spread.run_outbox, self._spread.run_greetings, self._spread.run_carousel]
            services += [self._repair.run, self._herald.run]
        for service in services:
            tasks.start_soon(self._serve, service)

    async def _serve(self, service: Callable[[], Awaitable[None]]) -> None:
        """Run a service; what it didn't foresee costs a second of it, not the peer."""
        while True:
            try:
                return await service()
            except Exception:
                self.counters.errors += 1
                log.exception("%s: a service failed", self.peer_id)
            await trio.sleep(TICK_S)

    async def _leave(self) -> None:
        if not self.silent:
            await self._spread.flush()
            await self._herald.send(leaving=True)
            await trio.sleep(GOODBYE_S)  # publishing queues; closing the network now would drop it

    async def _write(self) -> None:
        """Write what came from others to the journal, in batches."""
        while True:
            await self._store.pending.wait()
            await trio.sleep(JOURNAL_S)
            self._store.flush()

    async def _tick(self) -> None:
        """Once a second: who has gone, and what is due."""
        self._ticked = trio.current_time()
        while True:
            await beat(TICK_S, self._beat_s)
            self._look_at_clock()
            gone = self._presences.drop_silent(trio.current_time())
            for peer in gone:
                self._repair.forget(peer)
            if gone:
                self._presence_changed()
            self._guard("held ops", self._store.release_held)

    def _look_at_clock(self) -> None:
        """If this process was stopped (a laptop that slept), the silence wasn't the others' and their words wait."""
        now = trio.current_time()
        stopped, self._ticked = now - self._ticked - TICK_S, now
        if stopped > STOPPED_S:
            self._presences.excuse(stopped)
            self._settling.woke()

    # --- what comes in

    async def _receive(self, events: trio.MemoryReceiveChannel[Event]) -> None:
        async for event in events:
            self._guard(type(event).__name__, partial(self._handle, event))

    def _guard(self, what: str, act: Callable[[], None]) -> None:
        """The one place where an unforeseen fault of what came from outside ends."""
        try:
            act()
        except Exception:
            self.counters.errors += 1
            log.exception("%s: %s", self.peer_id, what)

    def _handle(self, event: Event) -> None:
        match event:
            case Frame():
                self._intake.frame(event)
            case Joined(peer):
                self._handle_joined(peer)
            case Left(peer):
                heard = self._presences.heard.get(peer)
                if heard is not None:
                    heard.lost = True
                    self._presence_changed()

    def _handle_joined(self, peer: PeerId) -> None:
        self._settling.met()
        heard = self._presences.heard.get(peer)
        if heard is not None:
            heard.lost = False
        if self.silent:
            return
        self._spread.greet(peer)
        self._herald.hurry()
        self._repair.want(peer)

    def _heard(self, presence: Presence) -> None:
        peer = presence.peer
        self._settling.met()
        self._presence_changed()
        if presence.leaving:
            self._repair.forget(peer)
        elif self._store.was(presence.fingerprint):
            self._settling.agreed(peer)
        elif not self.silent:
            self._repair.want(peer)

    async def _answer(self, peer: PeerId, request: bytes) -> bytes:
        if self.silent:
            raise Refused("an observer answers nothing")
        return await self._repair.answer(peer, request)
