"""One plan's ops and what they come to: which are grounded, and what each does to the tasks.

An op is *grounded* when everything that it refers to is grounded, of the right kind, and earlier by its hlc. Only
grounded ops mean something. An op is grounded once at most, and for good; so the cost is spread over the ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from . import ballots, rules
from .envelope import task_id
from .flow import Flow
from .nodes import NO_DRAFTS, Ballot, Entry, Node
from .ops import (
    MAX_DEPTH,
    Claim,
    Goal,
    Hlc,
    Note,
    Op,
    OpId,
    Pause,
    Pick,
    Proposal,
    Release,
    Result,
    Retry,
    SetPolicy,
    Steer,
    Step,
    TaskId,
    Veto,
    Vote,
)
from .ordered import Ordered, put
from .state import Changes, Plan


class _Kind(NamedTuple):
    """How a kind of op is treated; kinds that aren't listed refer to nothing and do nothing."""

    references: Callable[[Any], tuple[bytes, ...]]
    """What it refers to, given the body; may hold b""."""
    fits: Callable[[Op, Any], bool]
    """Whether that's all grounded, of the right kind and earlier, given op and body."""
    apply: Callable[[Op, Any, Changes], None]
    """Do what it says."""


class PlanBook:
    """Keeps one :class:`Plan` current.

    Args:
        goal: the op that began it.
    """

    def __init__(self, goal: Op) -> None:
        body = goal.body
        assert isinstance(body, Goal)
        root = Node(goal.id, goal.id, 0, None, None, 0, Step(body.title, body.detail), born=goal.hlc, made_at=goal.hlc)
        self.plan = Plan(goal, body, body.policy, {goal.id: root})
        self.grounded: set[OpId] = {goal.id}
        self._goal = goal
        self._nodes = cast("dict[TaskId, Node]", self.plan.tasks)
        self._ballots: dict[OpId, Ballot] = {}
        self._claims: dict[OpId, Op] = {}
        self._dependents: dict[bytes, Op | list[Op]] = {}
        self._policies: Ordered[tuple[int, OpId, Op]] = ()
        self._notes: dict[TaskId, Ordered[Entry]] = {}
        self._pauses: Ordered[tuple[Hlc, OpId, bool]] = ()
        self._allowed = frozenset(body.policy.scorers)
        self._policies_changed = False
        self._flow = Flow(self.plan, rules.terms(goal, body.policy, ()))
        self._flow.enter(root)
        self._kinds = {
            Proposal: _Kind(lambda body: (body.task, body.base), self._fits_proposal, self._proposal),
            Vote: _Kind(lambda body: (body.proposal,), self._fits_vote, self._vote),
            Claim: _Kind(lambda body: (body.task, body.prior), self._fits_claim, self._claim),
            Release: _Kind(lambda body: (body.claim,), self._fits_word_on_claim, self._release),
            Result: _Kind(lambda body: (body.claim,), self._fits_word_on_claim, self._result),
            Steer: _Kind(_of_act, self._fits_steer, self._steer),
        }

    # -- what a replica asks for

    def add(self, op: Op, changes: Changes) -> None:
        """Take an op: ground it, and what waited for it, as far as possible."""
        self._register(op)
        stack = [op]
        while stack:
            op = stack.pop()
            if op.id in self.grounded or not self._fits(op):
                continue
            self.grounded.add(op.id)
            changes.added.append(op)
            kind = self._kinds.get(type(op.body))
            if kind is not None:
                kind.apply(op, op.body, changes)
                self._push_dependents(op, stack)

    def settle(self, changes: Changes) -> None:
        """Bring the plan up to date after any number of additions."""
        if self._policies_changed:
            self._policies_changed = False
            self._new_policies(changes)
        self._flow.settle(changes)

    # -- grounding

    def _register(self, op: Op) -> None:
        """Note what an op refers to. (Most things have one dependent or none: a list only for more.)"""
        for reference in self._references(op):
            if not reference or reference == self._goal.id:
                continue
            waiting = self._dependents.get(reference)
            if waiting is None:
                self._dependents[reference] = op
            elif isinstance(waiting, list):
                waiting.append(op)
            else:
                self._dependents[reference] = [waiting, op]

    def _references(self, op: Op) -> tuple[bytes, ...]:
        kind = self._kinds.get(type(op.body))
        return kind.references(op.body) if kind is not None else ()

    def _push_dependents(self, op: Op, stack: list[Op]) -> None:
        """Push what refers to an op or to the tasks that it makes."""
        provided: tuple[bytes, ...] = (op.id,)
        if type(op.body) is Proposal:
            provided += tuple(task.id for task in self._ballots[op.id].tasks)
        for one in provided:
            waiting = self._dependents.get(one)
            if isinstance(waiting, list):
                stack.extend(waiting)
            elif waiting is not None:
                stack.append(waiting)

    def _fits(self, op: Op) -> bool:
        """Whether all that an op refers to is grounded, of the right kind, and earlier."""
        if op.hlc <= self._goal.hlc:
            return False
        kind = self._kinds.get(type(op.body))
        return type(op.body) is not Goal if kind is None else kind.fits(op, op.body)

    def _fits_proposal(self, op: Op, body: Proposal) -> bool:
        node = self._nodes.get(body.task)
        if node is None or node.born >= op.hlc or node.depth >= MAX_DEPTH:
            return False
        if not body.base:
            return True
        base = self._ballots.get(body.base)
        return base is not None and base.node is node and base.op.hlc < op.hlc

    def _fits_vote(self, op: Op, body: Vote | Pick | Veto) -> bool:
        ballot = self._ballots.get(body.proposal)
        return ballot is not None and ballot.op.hlc < op.hlc

    def _fits_claim(self, op: Op, body: Claim) -> bool:
        node = self._nodes.get(body.task)
        if node is None or node.born >= op.hlc:
            return False
        if not body.prior:
            return True
        prior = self._claims.get(body.prior)
        return prior is not None and prior.hlc < op.hlc and _task_of(prior) == body.task

    def _fits_word_on_claim(self, op: Op, body: Release | Result) -> bool:
        claim = self._claims.get(body.claim)
        return claim is not None and claim.author == op.author and claim.hlc < op.hlc

    def _fits_steer(self, op: Op, body: Steer) -> bool:
        """*Steering counts only from the goal's author.*"""
        act = body.act
        if op.author != self._goal.author:
            return False
        if isinstance(act, (Pick, Veto)):
            return self._fits_vote(op, act)
        if isinstance(act, (Retry, Note)):
            node = self._nodes.get(act.task)
            return node is not None and node.born < op.hlc
        return True

    # -- what grounded ops do

    def _proposal(self, op: Op, body: Proposal, changes: Changes) -> None:
        node = self._nodes[body.task]
        ballot = Ballot(op, body.steps, node=node)
        ballot.tasks = self._new_tasks(op, body, node, ballot)
        self._ballots[op.id] = ballot
        ballots.enlist(ballot)
        for child in ballot.tasks:
            changes.tasks.add((self.plan.id, child.id))
        self._touch(node, changes)
        self._flow.enter(node)

    def _new_tasks(self, op: Op, body: Proposal, up: Node, ballot: Ballot) -> tuple[Node, ...]:
        plan, depth = self.plan.id, up.depth + 1
        tasks: list[Node] = []
        for index, step in enumerate(body.steps):
            node = Node(task_id(op.id, index), plan, depth, up.id, op.id, index, step, drafts=NO_DRAFTS)
            node.path, node.born, node.up, node.ballot = up.path + bytes((index,)), op.hlc, up, ballot
            if step.after:
                node.befores = tuple(tasks[i] for i in step.after)
                node.after = tuple(before.id for before in node.befores)
            tasks.append(node)
            self._nodes[node.id] = node
        return tuple(tasks)

    def _vote(self, op: Op, body: Vote, changes: Changes) -> None:
        """*A peer's vote on its own proposal means nothing.*"""
        ballot = self._ballots[body.proposal]
        if op.author == ballot.op.author:
            return
        recounted, differs = ballots.put_vote(ballot, op, body.approve, self._allowed)
        if differs:
            self._touch(ballot.node, changes)
        if recounted:
            self._decide(ballot, changes)

    def _decide(self, ballot: Ballot, changes: Changes) -> None:
        shown = ballot.accepted_at, ballot.vetoed
        if ballots.decide(ballot, self._flow.line):
            self._flow.enter(ballot.node)
            if shown != (ballot.accepted_at, ballot.vetoed):
                self._touch(ballot.node, changes)

    def _claim(self, op: Op, body: Claim, changes: Changes) -> None:
        node = self._nodes[body.task]
        key = (op.hlc, rules.lot(body.task, op.author), op.id, op)
        node.working().put_claim(key, body.prior)
        self._claims[op.id] = op
        self._flow.leave(node)

    def _release(self, op: Op, body: Release, changes: Changes) -> None:
        node = self._node_of_claim(body.claim)
        node.working().put_release(body.claim, (op.hlc, op.id, body.failed))
        self._flow.leave(node)

    def _result(self, op: Op, body: Result, changes: Changes) -> None:
        node = self._node_of_claim(body.claim)
        key = (op.hlc, op.id, self._claims[body.claim].hlc, op)
        work = node.working()
        work.results = put(work.results, key, True)
        self._flow.leave(node)

    def _node_of_claim(self, claim: OpId) -> Node:
        return self._nodes[_task_of(self._claims[claim])]

    def _steer(self, op: Op, body: Steer, changes: Changes) -> None:
        act = body.act
        if isinstance(act, (Pick, Veto)):
            ballot = self._ballots[act.proposal]
            ballot.words = put(ballot.words, (op.hlc, op.id, isinstance(act, Pick)), True)
            self._decide(ballot, changes)
        elif isinstance(act, Retry):
            node = self._nodes[act.task]
            node.working().put_retry(op.hlc)
            self._flow.leave(node)
        elif isinstance(act, Note):
            node = self._nodes[act.task]
            notes = self._notes[act.task] = put(self._notes.get(act.task, ()), (op.hlc, op.id, op), True)
            node.notes = tuple(entry[2] for entry in notes)
            self._touch(node, changes)
        elif isinstance(act, Pause):
            self._pauses = put(self._pauses, (op.hlc, op.id, act.on), True)
            paused = bool(self._pauses) and self._pauses[-1][2]
            if paused != self.plan.paused:
                self.plan.paused = paused
                changes.plans.add(self.plan.id)
        elif isinstance(act, SetPolicy):
            self._policies = put(self._policies, (op.seq, op.id, op), True)
            self._policies_changed = True

    def _touch(self, node: Node, changes: Changes) -> None:
        changes.tasks.add((self.plan.id, node.id))

    # -- policies

    def _new_policies(self, changes: Changes) -> None:
        """Reckon anew what rests on policies: the one step whose cost grows with the plan, and the operator's."""
        plan, counting = self.plan, []
        for _, _, op in self._policies[: rules.MAX_POLICIES]:
            assert isinstance(op.body, Steer)
            assert isinstance(op.body.act, SetPolicy)
            counting.append((op.hlc, op.id, op.body.act.policy))
        latest = max(counting, default=(0, b"", plan.goal.policy), key=lambda entry: entry[:2])[2]
        line = rules.terms(self._goal, plan.goal.policy, counting)
        if latest != plan.policy:
            changes.plans.add(plan.id)
        elif line == self._flow.line:
            return
        plan.policy, self._flow.line = latest, line
        allowed = frozenset(latest.scorers)
        for ballot in self._ballots.values():
            if allowed != self._allowed and ballots.show_allowed(ballot, allowed):
                self._touch(ballot.node, changes)
            self._decide(ballot, changes)
        self._allowed = allowed
        for node in self._nodes.values():
            self._flow.enter(node)


def _task_of(claim: Op) -> TaskId:
    assert isinstance(claim.body, Claim)
    return claim.body.task


def _of_act(body: Steer) -> tuple[bytes, ...]:
    act = body.act
    if isinstance(act, (Pick, Veto)):
        return (act.proposal,)
    return (act.task,) if isinstance(act, (Retry, Note)) else ()
