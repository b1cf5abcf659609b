"""What a peer holds: its replica, what waits for its time, and what has still to go to the journal.

Every op enters here, from gossip, repair, the journal or the peer itself, and every change leaves here.
"""

from __future__ import annotations

import hashlib
import heapq
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import trio

from swarmtui.plan.clock import MAX_AHEAD_MS, HybridClock
from swarmtui.plan.ops import InvalidOp, Op, OpId, PeerId
from swarmtui.plan.replica import Replica
from swarmtui.plan.state import Changes

from .frames import Opener, peek
from .journal import Journal
from .limits import (
    AUTHOR_BURST,
    AUTHOR_RATE,
    STRANGERS_BURST,
    STRANGERS_RATE,
    Bucket,
    Buckets,
    Counters,
)

log = logging.getLogger(__name__)

MAX_HELD = 1_000
MAX_HELD_PER_AUTHOR = 100
MAX_HELD_BYTES = 4 * 1024 * 1024
RETRY_S = 30.0
"""A journal that can't be written is tried again after so long."""
HISTORY, HISTORY_S = 256, 15.0
"""Own fingerprints of the past that are remembered."""


class Held(msgspec.Struct, frozen=True):
    """An op that waits for its time."""

    op: Op
    ahead_ms: int
    """How far its author's clock is ahead of ours, at least."""


class Holding:
    """Ops from the future, earliest first, bounded: over a bound the one furthest ahead goes."""

    def __init__(self) -> None:
        self._ops: dict[OpId, Op] = {}
        self._heap: list[tuple[int, OpId]] = []
        self._by_author: Counter[PeerId] = Counter()
        self._bytes = 0

    def __iter__(self) -> Iterator[Op]:
        return iter(sorted(self._ops.values(), key=lambda op: op.order))

    def __len__(self) -> int:
        return len(self._ops)

    def get(self, op_id: OpId) -> Op | None:
        """An op that waits."""
        return self._ops.get(op_id)

    def add(self, op: Op) -> bool:
        """Hold an op; False if it was refused or is held already."""
        if op.id in self._ops or self._by_author[op.author] >= MAX_HELD_PER_AUTHOR:
            return False
        self._ops[op.id] = op
        self._by_author[op.author] += 1
        self._bytes += len(op.payload)
        heapq.heappush(self._heap, op.order)
        while len(self._ops) > MAX_HELD or self._bytes > MAX_HELD_BYTES:
            last = max(self._heap)
            self._heap.remove(last)
            heapq.heapify(self._heap)
            self._forget(last[1])
        return op.id in self._ops

    def due(self, clock: HybridClock) -> list[Op]:
        """Take out the ops whose time has come."""
        ready = []
        while self._heap and clock.ahead_ms(self._heap[0][0]) <= MAX_AHEAD_MS:
            ready.append(self._forget(heapq.heappop(self._heap)[1]))
        return ready

    def _forget(self, op_id: OpId) -> Op:
        op = self._ops.pop(op_id)
        self._bytes -= len(op.payload)
        self._by_author[op.author] -= 1
        if not self._by_author[op.author]:
            del self._by_author[op.author]
        return op


class Store:
    """The ops of one peer.

    Args:
        me: own peer id.
        replica: folds the ops.
        clock: merged with every op that is taken.
        journal: where they're kept; None: in memory only.
        counters: what happens is counted here.
        opener: checks ops from outside.
        changed: called with what an addition changed.
        present: whether an author's presence is heard (others share a limit).
    """

    def __init__(
        self,
        me: PeerId,
        replica: Replica,
        clock: HybridClock,
        journal: Journal | None,
        counters: Counters,
        opener: Opener,
        changed: Callable[[Changes], None],
        present: Callable[[PeerId], bool],
    ) -> None:
        self.me = me
        self.replica = replica
        self.clock = clock
        self.counters = counters
        self.holding = Holding()
        self.repeats: set[OpId] | None = None
        """Known ops that were heard again since somebody began to listen for that; None: nobody does."""
        self.told: dict[OpId, float] = {}
        """When each op was last heard on the topic, or published there by this peer, by trio's clock."""
        self.next_own: dict[OpId, int] = {}
        """Per plan, one more than the highest own seq that was ever seen."""
        self.pending = trio.Event()
        """Set while ops wait for the journal."""
        self.own_from_outside = 0
        """Ops of this very identity that came from others when it already spoke."""
        self.spoken: set[OpId] = set()
        """Plans in which this peer has spoken in this run."""
        self._journal = journal
        self._unwritten: list[Op] = []
        self._retry_at = 0.0
        self._opener = opener
        self._changed = changed
        self._present = present
        self._authors = Buckets(AUTHOR_RATE, AUTHOR_BURST)
        self._strangers = Bucket(STRANGERS_RATE, STRANGERS_BURST)
        self._history: OrderedDict[bytes, float] = OrderedDict()

    def open(self, wire: bytes, *, sparing: bool = False) -> Op | None:
        """Check and decode an op from outside; one that is held isn't checked again.

        Args:
            wire: the op as it travels.
            sparing: leave it alone, and return None, if its author has used up what it may bring in.

        Raises:
            InvalidOp: with the reason.
        """
        payload, signature, author = peek(wire)
        known = self.find(hashlib.sha256(payload).digest())
        if known is not None and known.signature == signature:
            return known
        if sparing and not self._bucket(author).has():
            return None
        try:
            return self._opener(wire)
        except InvalidOp:
            self.counters.invalid_by_author.count(author)
            raise

    def take(self, ops: Iterable[Op], *, limited: bool) -> int:
        """Take ops from outside.

        Args:
            ops: opened ops.
            limited: they weren't asked for, so their authors' limits hold.

        Returns:
            How many were new and are kept, now or until their time comes.
        """
        held = self.counters.held
        fresh = {op.id: op for op in ops if self._wanted(op, limited)}
        held = self.counters.held - held
        if not fresh:
            return held
        self.own_from_outside += sum(op.author == self.me and op.plan in self.spoken for op in fresh.values())
        return held + self._fold(list(fresh.values()), journal=True)

    def load(self, ops: Iterable[Op]) -> int:
        """Take ops from the journal."""
        fresh = [op for op in ops if not self._held_back(op)]
        return self._fold(fresh, journal=False)

    def say(self, ops: Sequence[Op]) -> bool:
        """Take own ops: fold them and write them to the journal now.

        Returns:
            False if the replica refused one, and then none may be published.
        """
        self._fold(ops, journal=True)
        if any(self.replica.get(op.id) is None for op in ops):
            return False
        self.flush()
        return True

    def find(self, op_id: OpId) -> Op | None:
        """An op of the replica, or one that waits for its time."""
        return self.replica.get(op_id) or self.holding.get(op_id)

    def ops(self) -> list[Op]:
        """All ops of the replica, and all that wait for their time: what nobody need send again."""
        return [*self.replica.ops(), *self.holding]

    def vector(self) -> dict[OpId, dict[PeerId, int]]:
        """Per plan and author: how many ops are here without a gap, those that wait for their time included."""
        vector = self.replica.vector()
        for op in sorted(self.holding, key=lambda op: op.seq):
            authors = vector.setdefault(op.plan, {})
            if op.seq == authors.get(op.author, 0):
                authors[op.author] = op.seq + 1
        return vector

    def note_told(self, ops: Iterable[Op]) -> None:
        """These ops went over the topic just now."""
        now = trio.current_time()
        self.told.update((op.id, now) for op in ops if self.replica.get(op.id) is not None)

    def note_own(self, op: Op) -> None:
        """If an op is our own, its number is used."""
        if op.author == self.me:
            self.next_own[op.plan] = max(self.next_own.get(op.plan, 0), op.seq + 1)

    def release_held(self) -> None:
        """Take the held ops whose time has come."""
        due = self.holding.due(self.clock)
        if due:
            self._fold(due, journal=True)

    def flush(self) -> None:
        """Write what waits to the journal. A journal that failed gets everything once it works again."""
        self.pending = trio.Event()
        ops, self._unwritten = self._unwritten, []
        if self._journal is None:
            return
        now = trio.current_time()
        if self._journal.degraded:
            if now < self._retry_at:
                return
            ops = list(self.replica.ops())
        if not self._journal.append(ops):
            self._retry_at = now + RETRY_S

    def was(self, fingerprint: bytes) -> bool:
        """Whether this replica had this fingerprint just now: whoever shows it is only a moment behind."""
        since = trio.current_time() - HISTORY_S
        return fingerprint == self.replica.fingerprint or self._history.get(fingerprint, since) > since

    def _bucket(self, author: PeerId) -> Bucket:
        return self._authors.of(author) if self._present(author) else self._strangers

    def _wanted(self, op: Op, limited: bool) -> bool:
        if self.replica.get(op.id) is not None:
            self.counters.duplicates += 1
            if self.repeats is not None:
                self.repeats.add(op.id)
            return False
        if limited and not self._bucket(op.author).take():
            self._refuse(op, "author's rate")
            return False
        return not self._held_back(op)

    def _held_back(self, op: Op) -> bool:
        self.note_own(op)  # also of one that has to wait
        if self.clock.ahead_ms(op.hlc) <= MAX_AHEAD_MS:
            return False
        if self.holding.add(op):
            self.counters.held += 1
        return True

    def _refuse(self, op: Op, reason: str) -> None:
        self.counters.refused.count(reason)
        self.counters.refused_by_author.count(op.author)

    def _fold(self, ops: Sequence[Op], *, journal: bool) -> int:
        before = self.replica.fingerprint
        for op in ops:
            self.clock.merge(op.hlc)
        changes = self.replica.add_many(ops)
        kept = [op for op in ops if self.replica.get(op.id) is not None]
        self.counters.ops_in += len(kept)
        if journal and self._journal is not None:
            known = {op.id for op in kept}
            self._unwritten += kept
            self._unwritten += [op for op in changes.added if op.id not in known]  # they had waited for their plan
            self.pending.set()
        if self.replica.fingerprint != before:
            self._history[before] = trio.current_time()
            if len(self._history) > HISTORY:
                self._history.popitem(last=False)
        self._changed(changes)
        return len(kept)
