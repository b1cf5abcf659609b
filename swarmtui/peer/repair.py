"""How two peers make their sets equal over request and response (docs/protocol.md, section 5).

The asker sends its vector ({plan: {author: ops without a gap}}); the answerer sends what the asker lacks, at most a
megabyte at a time, and its own vector; the asker then pushes what the answerer lacks. A vector can't tell everything:
ops beyond a gap, and two ops in one slot, look the same in it. If the vectors have nothing to say and the fingerprints
still differ, the two compare a hash per author, then the ids of the authors that differ, and fetch and push by id.
What a peer holds back for its time counts as held in all of that, so that it's sent once, not for as long as it waits.

Whatever comes here, request or answer, is taken as hostile: bounded, checked, and an exception at most.
"""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Literal

import msgspec
import trio
from msgspec import Meta

from swarmtui.plan.envelope import to_wire
from swarmtui.plan.ops import InvalidOp, Op, OpId, PeerId

from .frames import bundles
from .limits import ASKER_BURST, ASKER_RATE, Buckets
from .network import MAX_ANSWER_BYTES, Network, NetworkError
from .presence import Presences
from .store import Store

log = logging.getLogger(__name__)

PAGE_BYTES = MAX_ANSWER_BYTES // 2
"""Ops and vector of an answer: half of what is allowed, as a slow machine has only seconds for it."""
REQUEST_BYTES = 192 * 1024
"""Of a request, at most: networks carry 256 KiB."""
IDS_PER_FETCH = 2_000
SWAP_S = 60.0
"""The longest that one swap takes: who answers slowly, or never ends, mustn't be in the others' way. The next goes on
from there."""
SLICE = 50
"""Ops taken at once; between slices other tasks run."""
SLICE_PAUSE_S = 0.01
MIN_WAIT_S, MAX_WAIT_S = 0.1, 1.0
"""Gossip may close the difference in this time."""
GAP_S, MAX_GAP_S = 5.0, 60.0
"""Between two swaps with the same peer; the gap doubles while they make no difference."""
MAX_FAULTS = 10
"""Invalid ops in answers after which a swap is given up."""

_Id = Annotated[bytes, Meta(min_length=32, max_length=32)]
_Author = Annotated[str, Meta(min_length=1, max_length=128)]
_Seq = Annotated[int, Meta(ge=0, le=1 << 20)]
_Hash = Annotated[bytes, Meta(max_length=32)]
Vector = dict[_Id, dict[_Author, _Seq]]
Hashes = dict[_Id, dict[_Author, _Hash]]
Ids = dict[_Id, dict[_Author, bytes]]


class Refused(Exception):
    """A request that isn't answered."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a peer asks."""

    do: Literal["swap", "push", "compare", "fetch"]
    vector: Vector = {}
    """swap: what the asker holds."""
    ops: list[msgspec.Raw] = []
    """push: what the answerer lacks."""
    hashes: Hashes = {}
    """compare: a hash of the asker's ops per plan and author."""
    ids: bytes = b""
    """fetch: op ids, 32 bytes each."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What it gets."""

    ops: list[msgspec.Raw] = []
    """swap, fetch: ops that the asker lacks, as many as fit."""
    vector: Vector = {}
    """swap: what the answerer holds."""
    ids: Ids = {}
    """compare: for each author whose hash differs, the ids of the answerer's ops, 32 bytes each."""
    kept: _Seq = 0
    """push: how many were new."""
    fingerprint: _Hash = b""


_request = msgspec.msgpack.Decoder(Request)
_answer = msgspec.msgpack.Decoder(Answer)


class Repair:
    """Asks neighbours whose presence differs from what we hold, and answers those who ask."""

    def __init__(self, store: Store, network: Network, presences: Presences, rng: random.Random) -> None:
        self._store = store
        self._network = network
        self._presences = presences
        self._rng = rng
        self._askers = Buckets(ASKER_RATE, ASKER_BURST, 256)
        self._wanted: set[PeerId] = set()
        self._wake = trio.Event()
        self._next: dict[PeerId, float] = {}
        self._gap: dict[PeerId, float] = {}
        self.agreed: Callable[[PeerId], None] = lambda peer: None
        """Called when we hold all that a peer holds."""

    def want(self, peer: PeerId) -> None:
        """Swap with this peer soon, unless the difference is gone by then."""
        self._wanted.add(peer)
        self._wake.set()

    def forget(self, peer: PeerId) -> None:
        """The peer has gone."""
        self._wanted.discard(peer)
        self._next.pop(peer, None)
        self._gap.pop(peer, None)

    async def run(self) -> None:
        """Swap with one peer at a time, until cancelled."""
        while True:
            await self._wake.wait()
            await trio.sleep(self._rng.uniform(MIN_WAIT_S, MAX_WAIT_S))
            peer = self._choose()
            if peer is None:
                await self._rest()
                continue
            self._wanted.discard(peer)
            gained = await self._swap_safely(peer)
            gap = GAP_S if gained else min(MAX_GAP_S, 2 * self._gap.get(peer, GAP_S / 2))
            self._gap[peer], self._next[peer] = gap, trio.current_time() + gap

    def _choose(self) -> PeerId | None:
        """Pick a neighbour that differs and isn't resting."""
        neighbours = set(self._network.neighbours)
        now = trio.current_time()
        for peer in sorted(self._wanted):
            heard = self._presences.heard.get(peer)
            if peer not in neighbours:
                self._wanted.discard(peer)
            elif heard is not None and self._store.was(heard.presence.fingerprint):
                self._wanted.discard(peer)
                self.agreed(peer)
        self._next = {peer: at for peer, at in self._next.items() if at > now - MAX_GAP_S}
        self._gap = {peer: gap for peer, gap in self._gap.items() if peer in self._next}
        ready = sorted(peer for peer in self._wanted if self._next.get(peer, 0.0) <= now)
        return self._rng.choice(ready) if ready else None

    async def _rest(self) -> None:
        """Wait until somebody may be asked (again)."""
        self._wake = trio.Event()
        if not self._wanted:
            return
        soonest = min(self._next.get(peer, 0.0) for peer in self._wanted)
        with trio.move_on_at(soonest):
            await self._wake.wait()
        self._wake.set()

    async def _swap_safely(self, peer: PeerId) -> int:
        counters = self._store.counters
        counters.swaps += 1
        before = self._store.replica.count
        try:
            with trio.move_on_after(SWAP_S):
                return await self.swap(peer)
            return self._store.replica.count - before
        except NetworkError as error:
            counters.failed_asks += 1
            log.debug("repair with %s: %s", peer, error)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            counters.invalid.count("undecodable answer")
            self._network.strike(peer, "undecodable answer")
        except Exception:
            counters.errors += 1
            log.exception("repair with %s", peer)
        return 0

    async def swap(self, peer: PeerId) -> int:
        """Make our set and a neighbour's equal.

        Returns:
            How many ops went one way or the other.

        Raises:
            NetworkError: it didn't answer, or what it answers is no good.
            msgspec.MsgspecError: it answered garbage.
        """
        gained = 0
        while True:
            fingerprint = self._store.replica.fingerprint
            answer = await self._ask(peer, Request("swap", vector=self._vector()))
            new = await self._take(answer.ops, peer)
            gained += new
            if not new:
                break
        given = await self._push(peer, self._store.replica.lacking(answer.vector))
        if not new and not given and answer.fingerprint != fingerprint:
            gained += await self._compare(peer)
        self.agreed(peer)
        return gained + given

    async def _compare(self, peer: PeerId) -> int:
        """Make the sets equal where vectors can't tell the difference."""
        store = self._store
        answer = await self._ask(peer, Request("compare", hashes=hashes(ids_by_author(store.ops()))))
        theirs = {i for authors in answer.ids.values() for ids in authors.values() for i in cut(ids)}
        missing = sorted(i for i in theirs if store.find(i) is None)
        gained = 0
        while missing:
            asked, missing = missing[:IDS_PER_FETCH], missing[IDS_PER_FETCH:]
            page = await self._ask(peer, Request("fetch", ids=b"".join(asked)))
            new = await self._take(page.ops, peer)
            gained += new
            if new:
                missing = [i for i in asked if store.find(i) is None] + missing
        differing = {(plan, author) for plan, authors in answer.ids.items() for author in authors}
        lacking = (op for op in store.ops() if (op.plan, op.author) in differing and op.id not in theirs)
        return gained + await self._push(peer, lacking)

    async def _push(self, peer: PeerId, ops: Iterable[Op]) -> int:
        """Send what the peer lacks; stop when it takes nothing more."""
        given = 0
        for bundle in bundles(list(ops), REQUEST_BYTES):
            answer = await self._ask(peer, Request("push", ops=raws(bundle)))
            given += min(answer.kept, len(bundle))
            if not answer.kept:
                break
        return given

    async def _ask(self, peer: PeerId, request: Request) -> Answer:
        return _answer.decode(await self._network.ask(peer, msgspec.msgpack.encode(request)))

    async def _take(self, wires: Iterable[msgspec.Raw], peer: PeerId) -> int:
        """Check and take the ops of an answer, a slice at a time."""
        new = faults = 0
        wires = list(wires)
        for start in range(0, len(wires), SLICE):
            ops = []
            for wire in wires[start : start + SLICE]:
                try:
                    op = self._store.open(bytes(wire))
                    assert op is not None
                    ops.append(op)
                except InvalidOp as error:
                    faults += 1
                    self._fault(peer, str(error))
            new += self._store.take(ops, limited=False)
            if faults > MAX_FAULTS:
                raise NetworkError(f"{peer} answers with invalid ops")
            await trio.sleep(SLICE_PAUSE_S)
        self._store.counters.repaired += new
        return new

    def _fault(self, peer: PeerId, reason: str) -> None:
        self._store.counters.invalid.count(reason)
        self._store.counters.invalid_by_neighbour.count(peer)
        self._network.strike(peer, f"invalid op: {reason}")

    def _vector(self) -> Vector:
        """Our vector, without the last plans if it's too large for a request (their ops then come twice)."""
        vector: Vector = {}
        size = 0
        for plan, authors in sorted(self._store.vector().items()):
            size += 64 + 72 * len(authors)
            if size > REQUEST_BYTES:
                break
            vector[plan] = dict(authors)
        return vector

    # --- answering

    async def answer(self, peer: PeerId, data: bytes) -> bytes:
        """Answer a request.

        Raises:
            Refused: it is malformed, or the peer asks too much.
        """
        try:
            request = _request.decode(data)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            self._store.counters.invalid.count("undecodable request")
            self._network.strike(peer, "undecodable request")
            raise Refused("undecodable request") from error
        cost = 10.0 if request.do == "compare" else 1.0
        if not self._askers.of(peer).take(cost):
            self._store.counters.refused.count("asker's rate")
            raise Refused("too many requests")
        self._store.counters.answered += 1
        match request.do:
            case "swap":
                answer = self._answer_swap(request)
            case "push":
                answer = await self._answer_push(peer, request)
            case "compare":
                answer = self._answer_compare(request)
            case "fetch":
                found = (self._store.find(i) for i in cut(request.ids[: 32 * IDS_PER_FETCH]))
                answer = Answer(ops=first_page(op for op in found if op is not None))
        await trio.lowlevel.checkpoint()
        return msgspec.msgpack.encode(answer)

    def _answer_swap(self, request: Request) -> Answer:
        vector = self._vector()
        room = PAGE_BYTES - sum(64 + 72 * len(authors) for authors in vector.values())
        ops = first_page(self._store.replica.lacking(request.vector), room)
        return Answer(ops=ops, vector=vector, fingerprint=self._store.replica.fingerprint)

    async def _answer_push(self, peer: PeerId, request: Request) -> Answer:
        ops = []
        for wire in request.ops:
            try:
                op = self._store.open(bytes(wire), sparing=True)
            except InvalidOp as error:
                self._fault(peer, str(error))
                raise Refused("invalid op") from error
            if op is not None:
                ops.append(op)
            if len(ops) % SLICE == SLICE - 1:
                await trio.lowlevel.checkpoint()
        new = self._store.take(ops, limited=True)
        self._store.counters.repaired += new
        return Answer(kept=new)

    def _answer_compare(self, request: Request) -> Answer:
        held = ids_by_author(self._store.ops())
        ours = hashes(held)
        differing = {
            (plan, author)
            for side in (ours, request.hashes)
            for plan, authors in side.items()
            for author in authors
            if ours.get(plan, {}).get(author) != request.hashes.get(plan, {}).get(author)
        }
        return Answer(ids=_fewest_first({(p, a): held.get(p, {}).get(a, b"") for p, a in differing}))


def _fewest_first(differing: dict[tuple[OpId, PeerId], bytes]) -> Ids:
    """As many authors' ids as fit, and the largest alone: who says very much is in nobody else's way."""
    ids: Ids = {}
    size = 0
    for (plan, author), here in sorted(differing.items(), key=lambda item: (len(item[1]), item[0])):
        size += 80 + len(here)
        if size > PAGE_BYTES and ids:
            break
        ids.setdefault(plan, {})[author] = here
    return ids


def ids_by_author(ops: Iterable[Op]) -> Ids:
    """The ids of ops per plan and author, sorted and joined."""
    ids: dict[OpId, dict[PeerId, list[OpId]]] = {}
    for op in ops:
        ids.setdefault(op.plan, {}).setdefault(op.author, []).append(op.id)
    return {plan: {author: b"".join(sorted(held)) for author, held in authors.items()} for plan, authors in ids.items()}


def hashes(ids: Ids) -> Hashes:
    """A hash of each author's ids."""
    return {
        plan: {author: hashlib.sha256(held).digest()[:16] for author, held in authors.items()}
        for plan, authors in ids.items()
    }


def cut(ids: bytes) -> Iterator[OpId]:
    """Cut joined ids into ids; a rest is dropped."""
    return (ids[at : at + 32] for at in range(0, len(ids) - 31, 32))


def raws(ops: Iterable[Op]) -> list[msgspec.Raw]:
    """Ops as they travel in requests and answers."""
    return [msgspec.Raw(to_wire(op)) for op in ops]


def first_page(ops: Iterable[Op], room: int = PAGE_BYTES) -> list[msgspec.Raw]:
    """The first ops that fit into an answer."""
    return raws(next(bundles(ops, room), []))
