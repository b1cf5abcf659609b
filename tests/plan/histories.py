"""Random rich histories of several plans, for property tests.

A history is told from a string of bytes, so that Hypothesis can shrink it. Half of the moves carry a plan on (draft
where a split is wanted, vote, claim what is ready …), guided by a replica, so that deep states are reached; the
others do anything to anything: back-dated, equivocating, out of place, by the wrong author.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from swarmtui.plan import envelope
from swarmtui.plan.envelope import Identity, seal, task_id
from swarmtui.plan.ops import (
    MAX_SEQ,
    Body,
    Claim,
    Goal,
    Marks,
    Note,
    Op,
    OpId,
    Pause,
    Pick,
    Policy,
    Proposal,
    Release,
    Result,
    Retry,
    SetPolicy,
    Steer,
    Step,
    Veto,
    Vote,
)
from swarmtui.plan.replica import Replica
from swarmtui.plan.state import Plan, State, Task

T = TypeVar("T")
START = 1_700_000_000_000 << 16
SECOND = 1000 << 16
PEOPLE = [Identity.from_seed(bytes([i]) * 32) for i in range(8)]
OPERATOR, RIVAL_OPERATOR, *CREW = PEOPLE
MARKS = Marks(50, 60, 70)


@cache
def by_id(peer: str) -> Identity:
    return next(person for person in PEOPLE if person.peer_id == peer)


class _Over(Exception):
    """The bytes are used up."""


class Story:
    """Tells a history; `ops` is what was said, in order of telling, with what can never be grounded among it."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)
        self.now = START
        self.ops: list[Op] = []
        self.guide = Replica()
        self.plans: list[Op] = []
        self._seqs: dict[tuple[OpId, str], int] = {}

    def tell(self) -> list[Op]:
        try:
            self.new_goal()
            while True:
                move = self._choose(CARRY_ON) if self._byte() < 150 else self._choose(DISTURB)
                move(self)
        except _Over:
            return self.ops

    # -- choices

    def _byte(self) -> int:
        try:
            return next(self._data)
        except StopIteration:
            raise _Over from None

    def _choose(self, things: Iterable[T]) -> T:
        found = things if isinstance(things, Sequence) else list(things)
        if not found:
            raise _Nothing
        return found[self._byte() % len(found)]

    def _chance(self, percent: int) -> bool:
        return self._byte() * 100 < percent * 256

    def _plan(self) -> Plan:
        return self.guide.plans[self._choose(self.plans).id]

    def _task(self) -> Task:
        plan = self._plan()
        live = [task for task in plan.tasks.values() if task.live]
        return self._choose(live if self._chance(80) else list(plan.tasks.values()))

    def _any(self, kind: type[Body]) -> Op:
        return self._choose([op for op in self.ops if isinstance(op.body, kind)])

    # -- saying

    def say(self, who: Identity, plan: OpId, body: Body, hlc: int | None = None, seq: int | None = None) -> Op:
        if hlc is None:
            self.now += 1 + self._byte() ** 3 // 40 * (SECOND >> 13)
            hlc = self.now
        if seq is None:
            seq = self._seqs.get((plan, who.peer_id), 0)
            self._seqs[plan, who.peer_id] = seq + 1
        op = seal(who, plan, seq, hlc, body)
        self.ops.append(op)
        self.guide.add(op)
        return op

    def policy(self) -> Policy:
        need = self._choose((1, 2, 2, 3))
        scorers = tuple(person.peer_id for person in CREW[:3]) if self._chance(25) else ()
        return Policy(
            need=need,
            of=3,
            scorers=scorers,
            max_depth=self._choose((1, 2, 2, 3)),
            lease_s=self._choose((1, 10, 60)),
            attempts=self._choose((1, 2, 3)),
            synthesis=self._choose(("none", "root", "all")),
        )

    def steps(self) -> tuple[Step, ...]:
        made = []
        for i in range(self._choose((2, 2, 3, 4))):
            bits = self._byte()
            after = tuple(j for j in range(i) if bits >> j & 1 and bits & 64)
            made.append(Step(f"step {i}", atomic=bits % 3 == 0, after=after))
        return tuple(made)

    # -- moves that carry a plan on

    def new_goal(self) -> None:
        if len(self.plans) < 3:
            who = RIVAL_OPERATOR if len(self.plans) == 1 else OPERATOR
            self.now += 1
            op = seal(who, b"", 0, self.now, Goal(f"goal {len(self.plans)}", policy=self.policy()))
            self._seqs[op.id, who.peer_id] = 1
            self.plans.append(op)
            self.ops.append(op)
            self.guide.add(op)

    def carry_on(self) -> None:
        """What a sensible peer would do for a task."""
        plan = self._plan()
        open_tasks = [task for task in plan.tasks.values() if task.live and task.state in _NEXT]
        if not open_tasks:
            raise _Nothing
        task = self._choose(sorted(open_tasks, key=lambda task: task.depth))
        _NEXT[task.state](self, task)

    def draft(self, task: Task) -> None:
        self.say(self._choose(CREW), task.plan, Proposal(task.id, self.steps()))

    def judge(self, task: Task) -> None:
        draft = self._choose(list(task.drafts.values()))
        if self._chance(12):
            self.say(self._choose(CREW), task.plan, Proposal(task.id, self.steps(), base=draft.op.id))
        else:
            self.say(self._choose(CREW[:4]), task.plan, Vote(draft.op.id, self._chance(85), MARKS))

    def claim(self, task: Task) -> None:
        prior = task.chain[-1].id if task.chain else b""
        self.say(self._choose(CREW[-3:]), task.plan, Claim(task.id, prior))

    def work(self, task: Task) -> None:
        assert task.holder is not None
        holder, claim = by_id(task.holder.author), task.holder.id
        if self._chance(55):
            self.say(holder, task.plan, Result(claim, "done"))
        elif self._chance(60):
            self.say(holder, task.plan, Release(claim, "can't", self._chance(70)))
        else:
            self.now += self._choose((1, 10, 60)) * SECOND
            self.say(self._choose(CREW[-3:]), task.plan, Claim(task.id, claim))

    def retry(self, task: Task) -> None:
        self.steer(task.plan, Retry(task.id))

    def steer(self, plan: OpId, act: object) -> None:
        known = self.guide.plans.get(plan)
        who = by_id(known.operator) if known is not None and self._chance(95) else self._choose(CREW)
        self.say(who, plan, Steer(act))  # type: ignore[arg-type]

    # -- moves that disturb

    def any_vote(self) -> None:
        draft = self._any(Proposal)
        who = by_id(draft.author) if self._chance(20) else self._choose(PEOPLE)
        self.say(who, draft.plan, Vote(draft.id, self._chance(60), MARKS), self._back(draft.hlc))

    def any_claim(self) -> None:
        task = self._task()
        prior = self._any(Claim).id if self._chance(40) else b""
        self.say(self._choose(CREW), task.plan, Claim(task.id, prior), self._back(START))

    def any_word_on_claim(self) -> None:
        claim = self._any(Claim)
        who = by_id(claim.author) if self._chance(90) else self._choose(PEOPLE)
        body = Result(claim.id, "other") if self._chance(50) else Release(claim.id, "no", self._chance(70))
        self.say(who, claim.plan, body, self._back(claim.hlc))

    def any_draft(self) -> None:
        task = self._task()
        base = self._any(Proposal).id if self._chance(40) else b""
        self.say(self._choose(CREW), task.plan, Proposal(task.id, self.steps(), base=base), self._back(START))

    def many_drafts(self) -> None:
        """More than the limit, with the lowest numbers said last."""
        task, who = self._task(), self._choose(CREW)
        first = self._seqs.get((task.plan, who.peer_id), 0)
        for seq in reversed(range(first, first + 10)):
            self.say(who, task.plan, Proposal(task.id, (Step("a"), Step("b"))), seq=seq)
        self._seqs[task.plan, who.peer_id] = first + 10

    def any_pick(self) -> None:
        draft = self._any(Proposal)
        self.steer(draft.plan, Pick(draft.id))

    def any_veto(self) -> None:
        draft = self._any(Proposal)
        self.steer(draft.plan, Veto(draft.id))

    def any_retry(self) -> None:
        self.retry(self._task())

    def any_policy(self) -> None:
        self.steer(self._plan().id, SetPolicy(self.policy()))

    def many_policies(self) -> None:
        if self._chance(15):
            plan = self._plan()
            for _ in range(66):
                self.say(by_id(plan.operator), plan.id, Steer(SetPolicy(Policy(need=1 + self._byte() % 3))))

    def any_note(self) -> None:
        task = self._task()
        self.steer(task.plan, Note(task.id, "mind the gap"))

    def any_pause(self) -> None:
        self.steer(self._plan().id, Pause(self._chance(50)))

    def equivocate(self) -> None:
        """Another op with the author and seq of one that was said, alike or of another kind."""
        op, like = self._choose(self.ops), self._choose(self.ops)
        if isinstance(op.body, Goal) or self._chance(60):
            like = op
        if isinstance(like.body, Goal):
            return
        self.say(by_id(op.author), op.plan, like.body, op.hlc + self._byte() - 64, op.seq)

    def unknown(self) -> None:
        plan, who = self._plan(), self._choose(PEOPLE)
        seq = self._seqs.get((plan.id, who.peer_id), 0)
        self._seqs[plan.id, who.peer_id] = seq + 1
        self.now += 1
        body = {"kind": "steer", "act": {"act": "dance"}} if self._chance(50) else {"kind": "song", "notes": [1, 2]}
        self.ops.append(foreign(who, plan.id, seq, self.now, body))
        self.guide.add(self.ops[-1])

    def dangling(self) -> None:
        """Refers to what nobody ever said, or belongs to another plan, or to none that's known."""
        plan = bytes(32) if self._chance(30) else self._plan().id
        body: Body = self._choose((Vote(b"n" * 32, True, MARKS), Claim(b"t" * 32), Result(b"c" * 32, "x")))
        if self._chance(50):
            other = self._choose(self.ops).body
            body = body if isinstance(other, Goal) else other
        self.say(self._choose(PEOPLE), plan, body)

    def leap(self) -> None:
        self.now += self._choose((1, 10, 60, 600)) * SECOND

    def skip(self) -> None:
        """Leave a gap in the numbers."""
        plan, who = self._plan(), self._choose(CREW)
        seq = self._seqs.get((plan.id, who.peer_id), 0)
        self._seqs[plan.id, who.peer_id] = min(MAX_SEQ, seq + 1 + self._byte())

    def _back(self, floor: int) -> int | None:
        """Now (None), or a time in the past: mostly later than floor."""
        if self._chance(50):
            return None
        span = max(2, self.now - floor)
        return floor + (self._byte() - 8) * span // 256


class _Nothing(Exception):
    """There's nothing that the move could be made on."""


def _or_nothing(move: Callable[[Story], None]) -> Callable[[Story], None]:
    def attempt(story: Story) -> None:
        try:
            move(story)
        except _Nothing:
            story._byte()  # every move costs something, so that a story ends

    return attempt


_NEXT: dict[State, Callable[[Story, Task], None]] = {
    State.OPEN: Story.draft,
    State.DRAFT: Story.judge,
    State.READY: Story.claim,
    State.CLAIMED: Story.work,
    State.FAILED: Story.retry,
}
CARRY_ON = [_or_nothing(Story.carry_on)]
DISTURB = [
    _or_nothing(move)
    for move in (
        Story.any_vote,
        Story.any_vote,
        Story.any_claim,
        Story.any_claim,
        Story.any_word_on_claim,
        Story.any_word_on_claim,
        Story.any_draft,
        Story.many_drafts,
        Story.any_pick,
        Story.any_veto,
        Story.any_retry,
        Story.any_policy,
        Story.many_policies,
        Story.any_note,
        Story.any_pause,
        Story.equivocate,
        Story.equivocate,
        Story.unknown,
        Story.dangling,
        Story.leap,
        Story.skip,
        Story.new_goal,
    )
]


def foreign(who: Identity, plan: OpId, seq: int, hlc: int, body: object) -> Op:
    """An op whose body is any MessagePack value."""
    payload = msgspec.msgpack.encode(
        {"v": 1, "plan": plan, "author": who.peer_id, "seq": seq, "hlc": hlc, "body": body}
    )
    signature = who.sign(envelope.SIGNED_PREFIX + payload)
    return envelope.open_op(msgspec.msgpack.encode((payload, signature)))


def told(data: bytes) -> list[Op]:
    """The history that some bytes tell."""
    return Story(data).tell()


histories = st.binary(min_size=40, max_size=700).map(told)
"""Lists of ops, in an order in which they could have been said."""
__all__ = ["CREW", "MARKS", "OPERATOR", "PEOPLE", "SECOND", "START", "by_id", "foreign", "histories", "task_id", "told"]
