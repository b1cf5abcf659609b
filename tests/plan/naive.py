"""A second fold, deliberately naive: from scratch, slow, written from the protocol's sentences.

It shares nothing with `swarmtui.plan.rules` and `replica`; only the ops, the words of `State` and `task_id`. What it
gives is the same canonical bytes as `Replica.picture`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec

from swarmtui.plan.envelope import task_id
from swarmtui.plan.ops import (
    Claim,
    Goal,
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
    TaskId,
    Veto,
    Vote,
)

from .naive_grounding import kept, meaningful

# Limits, written down again.
DRAFTS, POLICIES = 8, 64
SECOND = 1000 << 16


def pictures(ops: Iterable[Op]) -> dict[OpId, bytes]:
    """Every plan's canonical bytes."""
    held = kept(ops)
    return {
        op.id: NaivePlan(op, [other for other in held.values() if other.plan == op.id]).picture()
        for op in held.values()
        if isinstance(op.body, Goal)
    }


class NaivePlan:
    """One plan, every question answered by looking through all ops."""

    def __init__(self, goal: Op, held: list[Op]) -> None:
        self.goal, self.held = goal, held
        self.ops, self.faulty = meaningful(goal, held)
        self.parents: dict[TaskId, tuple[Op, int]] = {
            task_id(op.id, i): (op, i) for op in self.of(Proposal) for i in range(len(op.body.steps))
        }
        self.tasks = [goal.id, *self.parents]
        # Asked again and again: remembered, nothing more.
        for name in ("winner", "live", "done_at", "ground", "accepted_at", "chain"):
            setattr(self, name, cache(getattr(self, name)))

    # -- which ops there are

    def of(self, kind: type) -> list[Op]:
        return [op for op in self.ops if isinstance(op.body, kind)]

    def acts(self, kind: type) -> list[Op]:
        """The operator's acts of a kind, earliest first."""
        found = [op for op in self.of(Steer) if isinstance(op.body.act, kind)]
        return sorted(found, key=lambda op: (op.hlc, op.id))

    # -- policies

    def policies(self) -> list[Op]:
        """Goal and policy changes, earliest first; of the changes only the 64 with the lowest seq (id)."""
        changes = sorted(self.acts(SetPolicy), key=lambda op: (op.seq, op.id))[:POLICIES]
        return [self.goal, *sorted(changes, key=lambda op: (op.hlc, op.id))]

    def policy_at(self, at: int | None) -> Policy:
        """The latest policy with hlc ≤ T (None: of all)."""
        body = next(op for op in reversed(self.policies()) if at is None or op.hlc <= at).body
        return body.policy if isinstance(body, Goal) else body.act.policy

    # -- drafts

    def drafts(self, task: TaskId) -> list[Op]:
        return [op for op in self.of(Proposal) if op.body.task == task]

    def votes(self, draft: OpId) -> list[Op]:
        """A peer's vote on its own proposal means nothing."""
        author = next(op.author for op in self.ops if op.id == draft)
        found = [op for op in self.of(Vote) if op.body.proposal == draft and op.author != author]
        return sorted(found, key=lambda op: (op.hlc, op.id))

    def approvals(self, draft: OpId) -> dict[str, int]:
        """A scorer counts once per proposal, at the hlc of its first approving vote."""
        firsts: dict[str, int] = {}
        for op in self.votes(draft):
            if op.body.approve:
                firsts.setdefault(op.author, op.hlc)
        return firsts

    def accepted_at(self, draft: OpId) -> int | None:
        """The earliest T at which the approvals reach the need of the policy in force at T; or the first pick."""
        proposal = next(op for op in self.ops if op.id == draft)
        approvals = self.approvals(draft)
        moments = []
        for at in sorted({*approvals.values(), *(op.hlc for op in self.policies())}):
            policy = self.policy_at(at)
            allowed = [s for s, hlc in approvals.items() if hlc <= at and (not policy.scorers or s in policy.scorers)]
            if len(allowed) >= policy.need and self.depth(proposal.body.task) < policy.max_depth:
                moments.append(at)
        moments += [op.hlc for op in self.acts(Pick) if op.body.act.proposal == draft]
        return min(moments, default=None)

    def vetoed(self, draft: OpId) -> bool:
        """The operator's latest word on a draft decides."""
        words = [op for op in self.acts(Pick) + self.acts(Veto) if op.body.act.proposal == draft]
        latest = max(words, key=lambda op: (op.hlc, op.id), default=None)
        return latest is not None and isinstance(latest.body.act, Veto)

    def counts(self, draft: Op) -> bool:
        """At most 8 proposals per author and task: those with the lowest seq (id); vetoed ones use up no place."""
        before = [
            op
            for op in self.drafts(draft.body.task)
            if op.author == draft.author and (op.seq, op.id) < (draft.seq, draft.id) and not self.vetoed(op.id)
        ]
        return len(before) < DRAFTS

    def winner(self, task: TaskId) -> Op | None:
        """The operator's latest pick, else the smallest (accepted_at, id), of those not vetoed. Atomic: none."""
        if self.step(task).atomic:
            return None
        standing = {op.id: op for op in self.drafts(task) if not self.vetoed(op.id)}
        for pick in reversed(self.acts(Pick)):
            if pick.body.act.proposal in standing:
                return standing[pick.body.act.proposal]
        accepted = [(self.accepted_at(op.id), op.id) for op in standing.values() if self.accepted_at(op.id) is not None]
        return standing[min(accepted)[1]] if accepted else None

    # -- the tree

    def step(self, task: TaskId) -> Step:
        if task == self.goal.id:
            return Step(self.goal.body.title, self.goal.body.detail)
        maker, index = self.parents[task]
        return maker.body.steps[index]

    def depth(self, task: TaskId) -> int:
        return 0 if task == self.goal.id else 1 + self.depth(self.parents[task][0].body.task)

    def after(self, task: TaskId) -> list[TaskId]:
        if task == self.goal.id:
            return []
        return [task_id(self.parents[task][0].id, i) for i in self.step(task).after]

    def ancestors(self, task: TaskId) -> list[TaskId]:
        if task == self.goal.id:
            return []
        parent = self.parents[task][0].body.task
        return [parent, *self.ancestors(parent)]

    def children(self, task: TaskId) -> list[TaskId]:
        winner = self.winner(task)
        return [task_id(winner.id, i) for i in range(len(winner.body.steps))] if winner else []

    def live(self, task: TaskId) -> bool:
        """The root is live; a step is live while its proposal is its (live) task's winner."""
        if task == self.goal.id:
            return True
        maker = self.parents[task][0]
        return self.live(maker.body.task) and self.winner(maker.body.task) is maker

    def is_leaf_by_shape(self, task: TaskId) -> bool:
        """Atomic, or at the latest max_depth; but a task that was split stays split."""
        deep = self.depth(task) >= self.policy_at(None).max_depth
        return self.winner(task) is None and (self.step(task).atomic or deep)

    def complete_at(self, task: TaskId) -> int | None:
        """When the last child of a branch was done."""
        times = [self.done_at(child) for child in self.children(task)]
        if None in times:
            return None
        return max(self.accepted_at(self.winner(task).id), *times)

    def wants_merge(self, task: TaskId) -> bool:
        """The root by the latest policy; others if both the latest and the one at their completion say all."""
        if task == self.goal.id:
            return self.policy_at(None).synthesis in ("root", "all")
        then = self.policy_at(self.complete_at(task)).synthesis
        return then == "all" and self.policy_at(None).synthesis == "all"

    def ground(self, task: TaskId) -> int | None:
        """The latest of all that the work rests on; None while something isn't done."""
        made = self.goal.hlc if task == self.goal.id else self.accepted_at(self.parents[task][0].id)
        waits = [before for t in [task, *self.ancestors(task)] for before in self.after(t)]
        times = [made, *(self.done_at(before) for before in waits)]
        if self.children(task):
            times.append(self.complete_at(task))
        return None if None in times else max(times)

    # -- work

    def retried_at(self, task: TaskId) -> int:
        return max((op.hlc for op in self.acts(Retry) if op.body.act.task == task), default=-1)

    def claims(self, task: TaskId) -> list[Op]:
        """The claims that count: later than the ground and the latest retry."""
        ground = self.ground(task)
        if ground is None:
            return []
        since = max(ground, self.retried_at(task))

        def key(op: Op) -> tuple[int, bytes, OpId]:
            return op.hlc, hashlib.sha256(task + op.author.encode()).digest(), op.id

        return sorted((op for op in self.of(Claim) if op.body.task == task and op.hlc > since), key=key)

    def release(self, claim: Op) -> Op | None:
        said = [op for op in self.of(Release) if op.body.claim == claim.id]
        return min(said, key=lambda op: (op.hlc, op.id), default=None)

    def chain(self, task: TaskId) -> tuple[list[Op], Op | None, int]:
        """(chain, holder, failures)."""
        policy, claims, chain, failures, given_back = self.policy_at(None), self.claims(task), [], 0, 0
        link = claims[0] if claims else None
        while link is not None:
            chain.append(link)
            release = self.release(link)
            released = release.hlc if release is not None else None
            successor = None
            for claim in claims:
                lapsed = claim.hlc >= link.hlc + policy.lease_s * SECOND
                if claim.body.prior == link.id and (lapsed or (released is not None and claim.hlc > released)):
                    successor = claim
                    break
            taken_before = successor is not None and released is not None and successor.hlc <= released
            if release is not None and not taken_before:
                given_back += not release.body.failed
                if release.body.failed or given_back > 64:
                    failures += 1
                if failures >= policy.attempts:
                    return chain, None, failures
            if successor is None:
                return chain, (None if released is not None else link), failures
            link = successor
        return [], None, 0

    def result(self, task: TaskId) -> Op | None:
        """The smallest (hlc, id) of the results whose claims count."""
        if not self.live(task):
            return None
        counting = {op.id: op for op in self.claims(task)}
        found = [op for op in self.of(Result) if op.body.claim in counting]
        if self.winner(task) is not None:
            if self.complete_at(task) is None or not self.wants_merge(task):
                return None
        elif not self.is_leaf_by_shape(task):
            # Not a leaf any more: work begun while it was one stands.
            found = [op for op in found if self.depth(task) >= self.policy_at(counting[op.body.claim].hlc).max_depth]
        return min(found, key=lambda op: (op.hlc, op.id), default=None)

    def done_at(self, task: TaskId) -> int | None:
        if not self.live(task):
            return None
        result = self.result(task)
        if result is not None:
            return result.hlc
        if self.winner(task) is not None:
            complete = self.complete_at(task)
            if complete is not None and not self.wants_merge(task):
                return complete
        return None

    def state(self, task: TaskId) -> str:
        if not self.live(task):
            return "superseded"
        if self.done_at(task) is not None:
            return "done"
        if self.winner(task) is None and not self.is_leaf_by_shape(task):
            return "draft" if any(not self.vetoed(op.id) for op in self.drafts(task)) else "open"
        if self.winner(task) is not None and self.complete_at(task) is None:
            return "accepted"
        if self.ground(task) is None:
            return "waiting"
        _, holder, failures = self.chain(task)
        if holder is not None:
            return "claimed"
        return "failed" if failures >= self.policy_at(None).attempts else "ready"

    def can_be_held(self, task: TaskId) -> bool:
        """Something that an executor does: a leaf, or a complete branch that's to be merged."""
        if not self.live(task):
            return False
        if self.winner(task) is not None:
            return self.complete_at(task) is not None and self.wants_merge(task)
        return self.is_leaf_by_shape(task) or self.result(task) is not None

    # -- the picture

    def picture(self) -> bytes:
        pauses = self.acts(Pause)
        return msgspec.msgpack.encode(
            (
                self.goal.id,
                msgspec.structs.astuple(self.policy_at(None)),
                bool(pauses) and pauses[-1].body.act.on,
                len(self.held),
                sorted(self.faulty),
                [self.task_picture(task) for task in sorted(self.tasks)],
            )
        )

    def task_picture(self, task: TaskId) -> Any:
        maker, index = self.parents.get(task, (None, 0))
        chain, holder, failures = self.chain(task) if self.can_be_held(task) else ([], None, 0)
        winner, result = self.winner(task), self.result(task)
        leaf = self.live(task) and (self.is_leaf_by_shape(task) or (winner is None and result is not None))
        return (
            task,
            self.depth(task),
            maker and maker.body.task,
            maker and maker.id,
            index,
            msgspec.structs.astuple(self.step(task)),
            self.after(task),
            self.live(task),
            leaf,
            self.state(task),
            [self.draft_picture(op) for op in sorted(self.drafts(task), key=lambda op: op.id)],
            winner and winner.id,
            self.children(task),
            [op.id for op in chain],
            holder and holder.id,
            failures,
            result and result.id,
            [op.id for op in self.acts(Note) if op.body.act.task == task],
        )

    def draft_picture(self, draft: Op) -> Any:
        allowed = self.policy_at(None).scorers
        latest = {op.author: op.id for op in self.votes(draft.id) if not allowed or op.author in allowed}
        approvals = {s: at for s, at in self.approvals(draft.id).items() if not allowed or s in allowed}
        return (
            draft.id,
            sorted(approvals.items()),
            sorted(latest.items()),
            self.accepted_at(draft.id),
            self.vetoed(draft.id),
            self.counts(draft),
        )
