"""Keeps the tasks of one plan current: who is live, what waits, who holds, what is done.

Facts flow along the tree in one direction only. Down: a split's winner makes its tasks live, and what a task waits for
gates those below it. Up: what is done below completes a branch, which opens the gates of later siblings. In reading
order (a task before its children, earlier steps before later ones, a task's completion behind its children) every fact
rests on earlier ones only. So whatever changed, one pass in that order settles it, and each task is looked at twice at
most.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from . import rules
from .nodes import Ballot, Node
from .ops import Hlc, Op, Policy, TaskId
from .rules import NO_HOLD, Hold, Term
from .state import Changes, Plan, State

_BEHIND = b"\xff"
"""Sorts a task's completion behind everything below it."""


class _Standing(NamedTuple):
    """What a task's completion step reckons."""

    leaf: bool
    state: State
    hold: Hold
    result: Op | None
    done_at: Hlc | None


_SUPERSEDED = _Standing(False, State.SUPERSEDED, NO_HOLD, None, None)
_OPEN = _Standing(False, State.OPEN, NO_HOLD, None, None)
_DRAFT = _Standing(False, State.DRAFT, NO_HOLD, None, None)
_ACCEPTED = _Standing(False, State.ACCEPTED, NO_HOLD, None, None)
_WAITING = _Standing(True, State.WAITING, NO_HOLD, None, None)
_READY_LEAF = _Standing(True, State.READY, NO_HOLD, None, None)
_READY_BRANCH = _Standing(False, State.READY, NO_HOLD, None, None)


class Flow:
    """The dirty tasks of one plan and the pass that settles them.

    Args:
        plan: whose `policy` is read at every pass.
        line: the terms of its policies.
    """

    def __init__(self, plan: Plan, line: tuple[Term, ...]) -> None:
        self.line = line
        self._plan = plan
        self._heap: list[tuple[bytes, TaskId, Node]] = []

    def enter(self, node: Node) -> None:
        """Look again at what flows down to this task and to its split, and then at its work and completion."""
        if not node.entering:
            node.entering = True
            heappush(self._heap, (node.path, node.id, node))

    def leave(self, node: Node) -> None:
        """Look again at this task's work and completion."""
        if not node.leaving:
            node.leaving = True
            heappush(self._heap, (node.path + _BEHIND, node.id, node))

    def settle(self, changes: Changes) -> None:
        """Bring every task up to date; note in `changes` those that differ from before."""
        heap = self._heap
        while heap:
            key, task, node = heappop(heap)
            if key is node.path:
                node.entering = False
                changed = self._entered(node)
            else:
                node.leaving = False
                changed = self._completed(node)
            if changed:
                changes.tasks.add((self._plan.id, task))

    def _entered(self, node: Node) -> bool:
        """*The root is live; a step is live while its proposal is its task's winner.*"""
        up, was_live, old_winner, old_gate = node.up, node.live, node.split, node.gate
        if up is None:
            node.live, node.gate = True, 0
        else:
            node.live = up.live and up.split is node.ballot
            node.gate = _gate(node, up) if node.live else None
            if node.live and node.ballot is not None and node.ballot.accepted_at is not None:
                node.made_at = node.ballot.accepted_at
        winner = node.winner = node.split = _winner(node)
        if winner is not old_winner:
            node.children = tuple(child.id for child in winner.tasks) if winner is not None else ()
            if was_live and old_winner is not None:
                self._enter_all(old_winner)
        if winner is not None and (
            node.live != was_live
            or (node.live and (winner is not old_winner or node.gate != old_gate))
            or (node.live and winner.tasks[0].made_at != winner.accepted_at)
        ):
            self._enter_all(winner)
        self.leave(node)
        return node.live != was_live or winner is not old_winner

    def _enter_all(self, ballot: Ballot) -> None:
        for child in ballot.tasks:
            self.enter(child)

    def _completed(self, node: Node) -> bool:
        """Reckon leaf, state, holder and result; pass on when the task was done."""
        leaf, state, hold, result, done_at = self._standing(node)
        if done_at != node.done_at:
            node.done_at = done_at
            self._pass_on(node)
        if (
            state is node.state
            and result is node.result
            and leaf is node.leaf
            and hold == (node.chain, node.holder, node.releases)
        ):
            return False
        node.leaf, node.state, node.result = leaf, state, result
        node.chain, node.holder, node.releases = hold
        return True

    def _pass_on(self, node: Node) -> None:
        if node.up is None or node.ballot is None:
            return
        self.leave(node.up)
        for sibling in node.ballot.tasks[node.index + 1 :]:
            if node in sibling.befores:
                self.enter(sibling)

    def _standing(self, node: Node) -> _Standing:
        if not node.live:
            return _SUPERSEDED
        policy = self._plan.policy
        if node.split is not None:
            return self._branch(node, node.split, policy)
        if node.step.atomic or node.depth >= policy.max_depth:
            return self._work(node, node.made_at, policy, leaf=True)
        work = node.work
        if work is not None and work.results and node.gate is not None:
            since = rules.counts_from(max(node.made_at, node.gate), work.retried_at)
            early = rules.result_as_leaf(work.results, since, self.line, node.depth)
            if early is not None:
                hold = self._hold(node, since, policy)
                return _Standing(True, State.DONE, hold, early, early.hlc)
        contest = node.contest
        return _DRAFT if contest is not None and contest.standing else _OPEN

    def _branch(self, node: Node, winner: Ballot, policy: Policy) -> _Standing:
        """*A branch is done when it has a winner and all children are done*, or, merged, when it has a result."""
        complete = winner.accepted_at or 0
        for child in winner.tasks:
            if child.done_at is None:
                return _ACCEPTED
            complete = max(complete, child.done_at)
        then = rules.in_force(self.line, complete).synthesis
        if not rules.wants_synthesis(policy.synthesis, then, node.up is None):
            return _Standing(False, State.DONE, NO_HOLD, None, complete)
        return self._work(node, max(node.made_at, complete), policy, leaf=False)

    def _work(self, node: Node, ground: Hlc, policy: Policy, leaf: bool) -> _Standing:
        """A task that executors do: *ready when the tasks in its `after`, and in its ancestors' `after`, are done.*"""
        if node.gate is None:
            return _WAITING if leaf else _ACCEPTED
        work = node.work
        if work is None:
            return _READY_LEAF if leaf else _READY_BRANCH
        since = rules.counts_from(max(ground, node.gate), work.retried_at)
        hold = self._hold(node, since, policy)
        result = rules.result(work.results, since)
        if result is not None:
            return _Standing(leaf, State.DONE, hold, result, result.hlc)
        return _Standing(leaf, rules.claim_state(hold, policy.attempts), hold, None, None)

    @staticmethod
    def _hold(node: Node, since: Hlc, policy: Policy) -> Hold:
        work = node.working()
        return rules.hold(work.claims, work.followers, work.released, since, policy.lease_s, policy.attempts)


def _gate(node: Node, up: Node) -> Hlc | None:
    """When the last of what it and its ancestors wait for was done; None while something isn't."""
    gate = up.gate
    if gate is None:
        return None
    for before in node.befores:
        if before.done_at is None:
            return None
        if before.done_at > gate:
            gate = before.done_at
    return gate


def _winner(node: Node) -> Ballot | None:
    """*Among a task's proposals, not vetoed, the winner is the operator's latest `pick`, else the smallest
    (accepted_at, op_id).* An atomic task isn't split."""
    contest = node.contest
    if contest is None or node.step.atomic:
        return None
    if contest.picked:
        return contest.picked[-1][2]
    return contest.accepted[0][2] if contest.accepted else None
