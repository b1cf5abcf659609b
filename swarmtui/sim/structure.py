"""Checks a plan against the protocol's sentences, from the ops themselves: no rule of `swarmtui.plan` is asked.

It isn't the whole fold again (the tests have one): it's what people would count by hand. It skips plans whose
policy was changed, where counting needs the whole history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from swarmtui.plan.ops import Claim, Hlc, Op, OpId, PeerId, Pick, Release, Result, SetPolicy, Steer, Vote
from swarmtui.plan.state import Draft, Plan, Task

MS = 1 << 16


def faults_of(plan: Plan, ops: Iterable[Op]) -> Iterator[str]:
    """Say what a plan shows that the ops don't bear out.

    Args:
        plan: as a replica shows it.
        ops: all ops of that replica.
    """
    said = [op for op in ops if op.plan == plan.id]
    approvals: dict[OpId, list[tuple[Hlc, PeerId]]] = defaultdict(list)
    releases: dict[OpId, Hlc] = {}
    picked = set()
    for op in said:
        match op.body:
            case Vote(proposal, approve) if approve:
                approvals[proposal].append((op.hlc, op.author))
            case Release(claim):
                releases[claim] = min(op.hlc, releases.get(claim, op.hlc))
            case Steer(act) if isinstance(act, Pick):
                picked.add(act.proposal)
            case Steer(act) if isinstance(act, SetPolicy) and op.author == plan.operator:
                return
    for task in plan.tasks.values():
        if task.live:
            yield from _split(plan, task, approvals, picked)
            yield from _chain(plan, task, releases)
            yield from _result(task)


def _split(plan: Plan, task: Task, approvals: dict[OpId, list[tuple[Hlc, PeerId]]], picked: set[OpId]) -> Iterator[str]:
    """*Accepted when the quorum is reached; the smallest (accepted_at, op_id) wins.*"""
    if task.winner is None or any(draft in picked for draft in task.drafts):
        return
    times = {draft.op.id: _quorum_at(plan, draft, approvals[draft.op.id]) for draft in task.drafts.values()}
    won = times[task.winner.op.id]
    if won is None:
        yield f"“{task.title}” was split without a quorum"
        return
    best = min((at, op_id) for op_id, at in times.items() if at is not None and not task.drafts[op_id].vetoed)
    if best != (won, task.winner.op.id):
        yield f"“{task.title}” was split by a draft that wasn't the first to be accepted"


def _quorum_at(plan: Plan, draft: Draft, votes: list[tuple[Hlc, PeerId]]) -> Hlc | None:
    """*A scorer counts once per proposal, at the hlc of its first approving vote.*"""
    first: dict[PeerId, Hlc] = {}
    for at, scorer in sorted(votes):
        allowed = not plan.policy.scorers or scorer in plan.policy.scorers
        if allowed and scorer != draft.op.author and at > draft.op.hlc:
            first.setdefault(scorer, at)
    counting = sorted(first.values())
    return counting[plan.policy.need - 1] if len(counting) >= plan.policy.need else None


def _chain(plan: Plan, task: Task, releases: dict[OpId, Hlc]) -> Iterator[str]:
    """*Claims form one chain, and its last link is the holder.*"""
    lease = plan.policy.lease_s * 1000 * MS
    for before, after in zip(task.chain, task.chain[1:], strict=False):
        assert isinstance(after.body, Claim)
        if after.body.prior != before.id:
            yield f"“{task.title}” has a chain whose links don't follow each other"
        freed = releases.get(before.id)
        if after.hlc < before.hlc + lease and (freed is None or after.hlc < freed):
            yield f"“{task.title}” was taken over within the lease"
    if task.holder is not None and (not task.chain or task.chain[-1] is not task.holder):
        yield f"“{task.title}” is held by somebody outside its chain"
    if len({claim.id for claim in task.chain}) != len(task.chain):
        yield f"“{task.title}” has a claim twice in its chain"


def _result(task: Task) -> Iterator[str]:
    """*A result counts by the claim that its own author made.*"""
    if task.result is not None:
        assert isinstance(task.result.body, Result)
        claim = next((claim for claim in task.chain if claim.id == task.result.body.claim), None)
        if claim is not None and claim.author != task.result.author:
            yield f"“{task.title}” was done by somebody who hadn't claimed it"
