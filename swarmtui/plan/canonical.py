"""A plan as canonical bytes: equal exactly when everything derived is equal. For tests and comparisons."""

from __future__ import annotations

from typing import Any

import msgspec

from .ops import Op
from .state import Draft, Plan, Task

_encoder = msgspec.msgpack.Encoder()


def picture(plan: Plan) -> bytes:
    """Everything that a replica derives for a plan."""
    return _encoder.encode(
        (
            plan.id,
            # Every field: which defaults are left out depends on how the author wrote them.
            msgspec.structs.astuple(plan.policy),
            plan.paused,
            plan.ops,
            sorted(plan.faulty),
            [task_picture(task) for _, task in sorted(plan.tasks.items())],
        )
    )


def task_picture(task: Task) -> tuple[Any, ...]:
    """A task's part of it."""
    return (
        task.id,
        task.depth,
        task.parent,
        task.proposal,
        task.index,
        msgspec.structs.astuple(task.step),
        task.after,
        task.live,
        task.leaf,
        task.state.value,
        [_draft(draft) for _, draft in sorted(task.drafts.items())],
        task.winner and task.winner.op.id,
        task.children,
        _ids(task.chain),
        task.holder and task.holder.id,
        task.releases,
        task.result and task.result.id,
        _ids(task.notes),
    )


def _draft(draft: Draft) -> tuple[Any, ...]:
    return (
        draft.op.id,
        sorted(draft.approvals.items()),
        sorted((scorer, vote.id) for scorer, vote in draft.votes.items()),
        draft.accepted_at,
        draft.vetoed,
        draft.counts,
    )


def _ids(ops: tuple[Op, ...]) -> list[bytes]:
    return [op.id for op in ops]
