"""Orders among drafts and tasks that every agent, or every agent for itself, comes to alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from fractions import Fraction

from swarmtui.plan.ops import PeerId, Policy, Proposal, TaskId, Vote
from swarmtui.plan.state import Draft, State, Task

from .crowd import may_vote

UNDECIDED = (State.OPEN, State.DRAFT)


def undecided(task: Task) -> bool:
    """Whether a task is a live branch that waits for a split."""
    return task.live and not task.leaf and task.winner is None and task.state in UNDECIDED


def standing(task: Task) -> list[Draft]:
    """The drafts that can still win, oldest first."""
    drafts = [draft for draft in task.drafts.values() if draft.counts and not draft.vetoed]
    return sorted(drafts, key=lambda draft: draft.op.order)


def refinements(drafts: list[Draft]) -> int:
    """How many of these drafts refine another."""
    return sum(isinstance(draft.op.body, Proposal) and bool(draft.op.body.base) for draft in drafts)


def verdicts(policy: Policy, draft: Draft) -> list[Vote]:
    """The latest votes on a draft by those whose votes count."""
    return [
        op.body
        for scorer, op in sorted(draft.votes.items())
        if isinstance(op.body, Vote) and may_vote(policy, scorer) and scorer != draft.op.author
    ]


def mean_mark(policy: Policy, draft: Draft) -> Fraction | None:
    """The mean of all marks for a draft, exact, so that all scorers rank alike; None without votes."""
    votes = verdicts(policy, draft)
    if not votes:
        return None
    return Fraction(sum(v.marks.specific + v.marks.distinct + v.marks.complete for v in votes), 3 * len(votes))


def best_first(policy: Policy, drafts: list[Draft]) -> list[Draft]:
    """Drafts by mean mark, highest first; those without votes last; ties by op id."""

    def order(draft: Draft) -> tuple[Fraction, bytes]:
        mark = mean_mark(policy, draft)
        return (Fraction(1) if mark is None else -mark, draft.op.id)

    return sorted(drafts, key=order)


def judged(policy: Policy, drafts: list[Draft], voters: int) -> bool:
    """Whether every draft has the verdicts that can be expected of so many living scorers."""
    wanted = min(policy.of, max(policy.need, voters))
    return all(len(verdicts(policy, draft)) >= wanted for draft in drafts)


def rank(peer: PeerId, task: TaskId) -> bytes:
    """An order of tasks that differs from peer to peer."""
    return hashlib.sha256(peer.encode() + task).digest()


def among_first(peers: Iterable[PeerId], me: PeerId, task: TaskId, count: int) -> bool:
    """Whether I'm one of the `count` peers for whom this task comes first: those begin at once, the others hesitate.

    All reckon alike who hear the same, so the first seldom do the same twice though they don't wait for each other.
    """
    return sum(rank(peer, task) < rank(me, task) for peer in peers if peer != me) < count
