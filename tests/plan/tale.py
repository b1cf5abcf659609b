"""A plan told op by op, for examples."""

from __future__ import annotations

from typing import Any

from swarmtui.plan.envelope import Identity, seal, task_id
from swarmtui.plan.ops import (
    Act,
    Body,
    Claim,
    Goal,
    Marks,
    Op,
    OpId,
    Policy,
    Proposal,
    Release,
    Result,
    Steer,
    Step,
    TaskId,
    Vote,
)
from swarmtui.plan.replica import Replica
from swarmtui.plan.state import Changes, Plan, State, Task

MS = 1 << 16
START = 1_700_000_000_000 * MS
OPERATOR, ADA, BOB, CLEO, DORA, EVA, FRED = (Identity.from_seed(bytes([i]) * 32) for i in range(1, 8))
MARKS = Marks(60, 70, 80)


class Tale:
    """One plan in one replica. Every op is a millisecond later than the one before, unless `at` says otherwise."""

    def __init__(self, **policy: Any) -> None:
        self.replica = Replica()
        self.ops: list[Op] = []
        self.now = 0
        self.last = Changes()
        policy = {"need": 2, "of": 3, "synthesis": "none"} | policy
        self.goal = self.say(OPERATOR, Goal("Trip", policy=Policy(**policy)))

    # -- saying

    def say(self, who: Identity, body: Body, at: float | None = None, seq: int | None = None) -> Op:
        """Sign an op and add it.

        Args:
            at: milliseconds since the start; now moves on to it if it's later.
        """
        if at is None:
            at = self.now + 1
        self.now = max(self.now, int(at))
        plan = b"" if isinstance(body, Goal) else self.goal.id
        if seq is None:
            seq = self.replica.next_seq(plan, who.peer_id)
        op = seal(who, plan, seq, START + int(at * MS), body)
        self.ops.append(op)
        self.last = self.replica.add(op)
        return op

    def steer(self, act: Act, who: Identity = OPERATOR, at: float | None = None) -> Op:
        return self.say(who, Steer(act), at)  # type: ignore[arg-type]

    def draft(self, task: TaskId | None = None, *steps: Step, who: Identity = ADA, **more: Any) -> Op:
        return self.say(who, Proposal(task or self.goal.id, steps or leaves(2)), **more)

    def approve(self, draft: Op, *who: Identity, at: float | None = None) -> None:
        for scorer in who or (BOB, CLEO):
            self.say(scorer, Vote(draft.id, True, MARKS), at)

    def reject(self, draft: Op, who: Identity, at: float | None = None) -> Op:
        return self.say(who, Vote(draft.id, False, MARKS, "vague"), at)

    def split(self, task: TaskId | None = None, *steps: Step) -> list[TaskId]:
        """Draft and accept; the new tasks."""
        draft = self.draft(task, *steps)
        self.approve(draft)
        return children(draft)

    def claim(self, task: TaskId, who: Identity = EVA, prior: Op | None = None, at: float | None = None) -> Op:
        return self.say(who, Claim(task, prior.id if prior else b""), at)

    def release(self, claim: Op, at: float | None = None, failed: bool = True) -> Op:
        return self.say(author_of(claim), Release(claim.id, "can't", failed), at)

    def finish(self, claim: Op, at: float | None = None) -> Op:
        return self.say(author_of(claim), Result(claim.id, "done"), at)

    def do(self, task: TaskId, who: Identity = EVA) -> Op:
        return self.finish(self.claim(task, who))

    # -- looking

    @property
    def plan(self) -> Plan:
        return self.replica.plans[self.goal.id]

    @property
    def root(self) -> Task:
        return self.plan.root

    def task(self, task: TaskId) -> Task:
        return self.plan.tasks[task]

    def state(self, task: TaskId) -> State:
        return self.task(task).state

    def means_something(self, op: Op) -> bool:
        return self.replica.grounded(op)


def leaves(count: int, **more: Any) -> tuple[Step, ...]:
    return tuple(Step(f"step {i}", atomic=True, **more) for i in range(count))


def children(draft: Op) -> list[TaskId]:
    assert isinstance(draft.body, Proposal)
    return [task_id(draft.id, i) for i in range(len(draft.body.steps))]


def author_of(op: Op) -> Identity:
    return next(who for who in (OPERATOR, ADA, BOB, CLEO, DORA, EVA, FRED) if who.peer_id == op.author)


def missing(number: int = 0) -> OpId:
    """The id of something that was never said."""
    return bytes([255, number]) * 16
