"""What a replica makes of its ops: plans, tasks, drafts, claims, results.

These objects are owned and kept current by :class:`swarmtui.plan.replica.Replica`. Everybody else reads them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from .ops import Goal, Hlc, Op, OpId, PeerId, Policy, Step, TaskId


class State(enum.Enum):
    """A task's state: the words that people see (docs/protocol.md, section 3)."""

    OPEN = "open"
    """A live branch without drafts."""
    DRAFT = "draft"
    """A live branch with drafts, none accepted."""
    ACCEPTED = "accepted"
    """A live branch whose split is accepted."""
    WAITING = "waiting"
    """A live leaf (or a branch to be merged) that waits for the results of others."""
    READY = "ready"
    """Can be claimed now."""
    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"
    """Released as often as the policy allows; only the operator's retry opens it."""
    SUPERSEDED = "superseded"
    """Isn't live: belongs to a draft that didn't win."""


@dataclass(slots=True, eq=False)
class Draft:
    """A proposal and what was said of it."""

    op: Op
    steps: tuple[Step, ...]
    approvals: dict[PeerId, Hlc] = field(default_factory=dict)
    """First approving vote per scorer that may count."""
    votes: dict[PeerId, Op] = field(default_factory=dict)
    """Latest vote per scorer, for marks and critiques (body is a Vote)."""
    accepted_at: Hlc | None = None
    """When the quorum (or the operator's pick) accepted it."""
    vetoed: bool = False
    counts: bool = True
    """False for drafts over the limit of eight per author and task."""


@dataclass(slots=True, eq=False)
class Task:
    """A node of the tree."""

    id: TaskId
    plan: OpId
    depth: int
    parent: TaskId | None
    proposal: OpId | None
    """The draft that made this task; None for the root."""
    index: int
    step: Step
    """Title, detail, atomic, needs. For the root: made from the goal."""
    after: tuple[TaskId, ...] = ()
    live: bool = False
    leaf: bool = False
    state: State = State.SUPERSEDED
    drafts: dict[OpId, Draft] = field(default_factory=dict)
    winner: Draft | None = None
    children: tuple[TaskId, ...] = ()
    """The winner's tasks, in order; empty without a winner."""
    chain: tuple[Op, ...] = ()
    """Claims that form the chain of holders; the last is the holder."""
    holder: Op | None = None
    """The claim that holds the task now; None when unclaimed, released or retried."""
    releases: int = 0
    result: Op | None = None
    """The result that counts (body is a Result)."""
    notes: tuple[Op, ...] = ()
    """The operator's notes, oldest first."""

    @property
    def title(self) -> str:
        return self.step.title


@dataclass(slots=True, eq=False)
class Plan:
    """One plan: the goal and its tree."""

    op: Op
    goal: Goal
    policy: Policy
    """The policy in force after every op held."""
    tasks: dict[TaskId, Task]
    paused: bool = False
    ops: int = 0
    faulty: set[PeerId] = field(default_factory=set)
    """Authors of two ops with the same seq."""

    @property
    def id(self) -> OpId:
        return self.op.id

    @property
    def operator(self) -> PeerId:
        return self.op.author

    @property
    def root(self) -> Task:
        return self.tasks[self.op.id]

    @property
    def done(self) -> bool:
        return self.root.state is State.DONE


@dataclass(slots=True)
class Changes:
    """What an addition to a replica changed."""

    added: list[Op] = field(default_factory=list)
    """Ops that are new and count (an op that had waited for its references is listed when they come)."""
    tasks: set[tuple[OpId, TaskId]] = field(default_factory=set)
    """(plan, task) of every task whose state or contents differ from before."""
    plans: set[OpId] = field(default_factory=set)
    """Plans that are new, or whose policy, pause or faulty authors differ."""

    def __bool__(self) -> bool:
        return bool(self.added or self.tasks or self.plans)
