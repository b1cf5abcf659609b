"""Bugs that are planted on purpose, to see that the tests bite. Each is a small patch of the real code, and says where
it's hunted: `sim` (simulated swarms, drawn with these faults or a scene by hand) or `fold` (random histories in
changing orders, compared with the naive fold, as tests/plan does)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import trio

from swarmtui.agents import decomposer, executor, scorer
from swarmtui.agents.agent import Agent
from swarmtui.agents.executor import Executor, Holders
from swarmtui.peer import intake, peer, repair, spread, store
from swarmtui.peer.herald import Herald
from swarmtui.peer.recall import Recall
from swarmtui.peer.repair import Repair
from swarmtui.peer.spread import Spread
from swarmtui.peer.store import Store
from swarmtui.plan import ballots, clock, flow, rules, shelf
from swarmtui.plan.book import PlanBook
from swarmtui.plan.nodes import Work

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Bug:
    """A planted bug."""

    name: str
    plant: Callable[[Patch], None]
    hunt: str = "sim"
    """sim or fold."""
    faults: tuple[str, ...] | None = ()
    """Kinds of faults that the scenarios are drawn with; None: any."""
    seeds: int = 12
    """It must be found within so many."""
    scene: str = ""
    """Hunted in this scene of test_planted instead."""


BUGS: list[Bug] = []


def bug(hunt: str = "sim", faults: str | None = "", seeds: int = 12, scene: str = "") -> Callable[..., Any]:
    """Add a bug; its name is the function's docstring."""

    def add(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
        kinds = tuple(faults.split()) if faults is not None else None
        BUGS.append(Bug((plant.__doc__ or "").strip(), plant, hunt, kinds, seeds, scene))
        return plant

    return add


# --- the fold: who wins


@bug("fold")
def _(patch: Patch) -> None:
    """claims of one instant aren't settled by lot: the lower op id wins"""
    patch.setattr(rules, "lot", lambda task, author: b"")


@bug("sim", "partition reorder", seeds=60)
def _(patch: Patch) -> None:
    """splits are accepted in the order in which their quorums are seen"""
    patch.setattr(flow, "_winner", _first_seen())


def _first_seen() -> Callable[[Any], Any]:
    real = flow._winner
    seen: dict[Any, Any] = {}

    def winner(node: Any) -> Any:
        found = real(node)
        if found is None:
            return None
        return seen.setdefault(node, found)

    return winner


@bug("sim", "hostile")
def _(patch: Patch) -> None:
    """a scorer that votes twice counts twice"""
    real = rules.accepted_at

    def twice(tally: Any, line: Any, depth: int) -> Any:
        return real(sorted([*tally, *tally]), line, depth)

    patch.setattr(rules, "accepted_at", twice)


@bug("fold")
def _(patch: Patch) -> None:
    """an author's vote on its own draft counts"""

    def vote(self: PlanBook, op: Any, body: Any, changes: Any) -> None:
        ballot = self._ballots[body.proposal]
        ballots.put_vote(ballot, op, body.approve, self._allowed)
        self._touch(ballot.node, changes)
        self._decide(ballot, changes)

    patch.setattr(PlanBook, "_vote", vote)


@bug("fold")
def _(patch: Patch) -> None:
    """the latest vote counts: a reject takes an approval back"""
    real = ballots.put_vote

    def put_vote(ballot: Any, op: Any, approve: bool, allowed: Any) -> Any:
        told = real(ballot, op, approve, allowed)
        if approve or op.author not in ballot.firsts:
            return told
        del ballot.firsts[op.author]
        ballot.approvals.pop(op.author, None)
        ballot.tally = tuple(entry for entry in ballot.tally if entry[1] != op.author)
        return True, True

    patch.setattr(ballots, "put_vote", put_vote)


@bug("fold")
def _(patch: Patch) -> None:
    """the latest policy decides on votes of the past"""
    real = rules.accepted_at
    patch.setattr(rules, "accepted_at", lambda tally, line, depth: real(tally, line[-1:], depth))


@bug("fold")
def _(patch: Patch) -> None:
    """a vetoed draft can win"""
    real = ballots.decide

    def decide(ballot: Any, line: Any) -> bool:
        words, ballot.words = ballot.words, [word for word in ballot.words if word[2]]
        try:
            return real(ballot, line)
        finally:
            ballot.words = words

    patch.setattr(ballots, "decide", decide)


@bug("fold")
def _(patch: Patch) -> None:
    """an op may be older than what it refers to"""
    real = PlanBook._fits

    def fits(self: PlanBook, op: Any) -> bool:
        return real(self, msgspec.structs.replace(op, hlc=1 << 62)) and op.hlc > self._goal.hlc

    patch.setattr(PlanBook, "_fits", fits)


# --- the fold: who holds, what's done


@bug("sim", scene="a dead holder")
def _(patch: Patch) -> None:
    """`prior` is forgotten: nobody can follow a holder"""
    real = Work.put_claim
    patch.setattr(Work, "put_claim", lambda self, key, prior: real(self, key, b""))


@bug("sim", "partition reorder")
def _(patch: Patch) -> None:
    """claims stand in the order in which they arrive"""

    def put_claim(self: Work, key: Any, prior: Any) -> None:
        followers = self.followers = self.followers or {}
        self.claims = (*self.claims, key)
        if prior:
            followers[prior] = (*followers.get(prior, ()), key)

    patch.setattr(Work, "put_claim", put_claim)
    patch.setattr(rules, "_first_from", lambda claims, hlc: next((c for c in claims if c[0] >= hlc), None))


@bug("fold")
def _(patch: Patch) -> None:
    """leases are ignored: whoever claims last holds"""
    patch.setattr(rules, "follows_from", lambda prior, released_at, lease_s: prior + 1)


@bug("fold")
def _(patch: Patch) -> None:
    """a claim may be older than what the work rests on"""
    patch.setattr(rules, "counts_from", lambda ground, retried_at: retried_at)


@bug("sim", scene="a failing model")
def _(patch: Patch) -> None:
    """the operator's retry is ignored"""
    patch.setattr(Work, "put_retry", lambda self, at: None)


@bug("fold")
def _(patch: Patch) -> None:
    """the last result wins instead of the first"""
    real = rules.result
    patch.setattr(rules, "result", lambda results, since: real(reversed(list(results)), since))


@bug("fold")
def _(patch: Patch) -> None:
    """what a task waits for isn't waited for"""
    patch.setattr(flow, "_gate", lambda node, up: up.gate)


@bug("fold")
def _(patch: Patch) -> None:
    """releases don't count as attempts"""
    real = Work.put_release

    def put_release(self: Work, claim: bytes, key: Any) -> None:
        real(self, claim, key)
        self.released = {}

    patch.setattr(Work, "put_release", put_release)


@bug("fold")
def _(patch: Patch) -> None:
    """what is only given back counts as a failure"""
    real = Work.put_release

    def put_release(self: Work, claim: bytes, key: Any) -> None:
        real(self, claim, (*key[:2], True))

    patch.setattr(Work, "put_release", put_release)


# --- the set


@bug("sim", "hostile")
def _(patch: Patch) -> None:
    """of two ops in one slot the one that came first counts"""
    real = PlanBook.add

    def add(self: PlanBook, op: Any, changes: Any) -> None:
        slots = vars(self).setdefault("planted", {})
        if slots.setdefault((op.author, op.seq), op) is op:
            real(self, op, changes)

    patch.setattr(PlanBook, "add", add)


@bug("sim", "reorder delay")
def _(patch: Patch) -> None:
    """an op that came before what it refers to is never taken up"""
    patch.setattr(PlanBook, "_push_dependents", lambda self, op, stack: None)


@bug("sim", "reorder")
def _(patch: Patch) -> None:
    """the fingerprint depends on the order of arrival"""
    count = itertools.count(1)
    real = shelf.print_of
    patch.setattr(shelf, "print_of", lambda op: real(op) * next(count))


# --- clocks


@bug("sim", scene="a clock far ahead")
def _(patch: Patch) -> None:
    """ops from the future are taken at once and merged into the clock"""
    patch.setattr(store, "MAX_AHEAD_MS", 10**15)
    patch.setattr(clock, "MAX_AHEAD_MS", 10**15)


# --- gossip and repair


@bug("sim", "loss partition")
def _(patch: Patch) -> None:
    """nobody repairs (a difference in fingerprints is taken for none), and nobody tells anything twice"""
    patch.setattr(Store, "was", lambda self, fingerprint: True)
    patch.setattr(Spread, "run_carousel", _sleep)


@bug("sim", "partition loss")
def _(patch: Patch) -> None:
    """a bundle is dropped: the last op of each page and push"""
    real = repair.bundles

    def bundles(ops: Any, limit: int = 1 << 17) -> Iterator[list[Any]]:
        for bundle in real(ops, limit):
            yield bundle[:-1] or bundle[:0]

    patch.setattr(repair, "bundles", bundles)
    patch.setattr(Spread, "run_carousel", _sleep)


async def _sleep(self: Any) -> None:
    await trio.sleep_forever()


@bug("sim", "hostile")
def _(patch: Patch) -> None:
    """repair by vectors alone: two ops in one slot look like one"""

    async def compare(self: Repair, peer_: str) -> int:
        return 0

    patch.setattr(Repair, "_compare", compare)
    patch.setattr(Spread, "run_carousel", _sleep)


@bug("sim", scene="a late listener")
def _(patch: Patch) -> None:
    """newcomers are told nothing"""
    patch.setattr(Spread, "greet", lambda self, peer_: None)
    patch.setattr(spread, "CAROUSEL_S", 1e9)
    patch.setattr(spread, "CAROUSEL_IDLE_S", 1e9)


@bug("sim", scene="a lossy listener")
def _(patch: Patch) -> None:
    """there's no carousel"""
    patch.setattr(Spread, "run_carousel", _sleep)


@bug("sim", "join")
def _(patch: Patch) -> None:
    """an observer sends presence"""
    real = peer.Peer._start_tasks

    def start(self: peer.Peer, tasks: Any, receive: Any) -> None:
        real(self, tasks, receive)
        if self.silent:
            tasks.start_soon(self._herald.run)

    patch.setattr(peer.Peer, "_start_tasks", start)


@bug("sim", scene="an observer")
def _(patch: Patch) -> None:
    """an observer answers requests"""

    async def answer(self: peer.Peer, who: str, request: bytes) -> bytes:
        return await self._repair.answer(who, request)

    patch.setattr(peer.Peer, "_answer", answer)


# --- restart


@bug("sim", "")
def _(patch: Patch) -> None:
    """ops are published before they are on disk"""

    def say(self: Store, ops: Any) -> bool:
        self._fold(ops, journal=True)
        return all(self.replica.get(op.id) is not None for op in ops)

    patch.setattr(Store, "say", say)


@bug("sim", scene="a restart with journal")
def _(patch: Patch) -> None:
    """a restarted peer begins to count at 0 again"""
    real = peer.Peer._seal

    def seal_(self: peer.Peer, plan: bytes, bodies: Any) -> Any:
        said: dict[bytes, int] = self.__dict__.setdefault("planted", {})
        first = self.replica.next_seq
        self.replica.next_seq = lambda plan, author: said.get(plan, 1 if self.card.role == "operator" else 0)  # type: ignore[method-assign]
        self._store.next_own.clear()
        try:
            ops = real(self, plan, bodies)
        finally:
            self.replica.next_seq = first  # type: ignore[method-assign]
        if plan:
            said[plan] = ops[-1].seq + 1
        return ops

    patch.setattr(peer.Peer, "_seal", seal_)


@bug("sim", scene="all at once")
def _(patch: Patch) -> None:
    """the journal isn't read at the start"""

    async def start(self: Recall) -> None:
        pass

    patch.setattr(Recall, "start", start)


# --- agents


@bug("sim", scene="a dead holder")
def _(patch: Patch) -> None:
    """nobody takes over from a silent holder"""
    patch.setattr(Executor, "_free_at", lambda self, plan, task, now: float("inf"))


@bug("sim", scene="hostile claimers")
def _(patch: Patch) -> None:
    """whoever says that it works is believed for ever"""
    patch.setattr(Holders, "contested", lambda self, plan, task: False)
    patch.setattr(executor, "PASSED_ON", 10**9)


@bug("sim", scene="nothing is good enough")
def _(patch: Patch) -> None:
    """scorers never settle"""
    patch.setattr(scorer, "choose_settled", lambda *args: None)


@bug("sim", "model")
def _(patch: Patch) -> None:
    """a decomposer's own bug: an exception while it chooses"""
    real = decomposer.choose_draft
    calls = itertools.count()

    def choose(*args: Any) -> Any:
        if next(calls) % 7 == 6:
            raise KeyError("planted")
        return real(*args)

    patch.setattr(decomposer, "choose_draft", choose)


@bug("sim", "hostile")
def _(patch: Patch) -> None:
    """a malformed frame ends in an exception that nobody foresaw"""

    def valid(self: intake.Intake, data: bytes) -> bool:
        return True

    real = intake.take_apart

    def take_apart(data: bytes) -> Any:
        try:
            return real(data)
        except intake.InvalidFrame:
            raise ZeroDivisionError("planted") from None

    patch.setattr(intake.Intake, "valid", valid)
    patch.setattr(intake, "take_apart", take_apart)


@bug("sim", scene="a failing model")
def _(patch: Patch) -> None:
    """a model that fails ends its agent"""
    real = Agent._after

    async def after(self: Any, job: Any, trouble: str, why: str) -> None:
        if trouble:
            raise RuntimeError("planted")
        await real(self, job, trouble, why)

    patch.setattr(Agent, "_after", after)


@bug("sim", "")
def _(patch: Patch) -> None:
    """presence tells of an older set"""
    real = Herald._presence

    def presence(self: Herald, leaving: bool) -> Any:
        return msgspec.structs.replace(real(self, leaving), fingerprint=bytes(16))

    patch.setattr(Herald, "_presence", presence)
