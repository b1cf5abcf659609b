"""Which ops are kept and which mean something: the first half of the naive fold (see naive.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from swarmtui.plan.envelope import task_id
from swarmtui.plan.ops import (
    Claim,
    Goal,
    Note,
    Op,
    OpId,
    Pick,
    Proposal,
    Release,
    Result,
    Retry,
    Steer,
    TaskId,
    Unknown,
    Veto,
    Vote,
)

DEPTH = 8


def kept(ops: Iterable[Op]) -> dict[OpId, Op]:
    """A replica keeps all ops of the plans that it knows."""
    everything = {op.id: op for op in ops}
    return {op.id: op for op in everything.values() if op.plan in everything}


def meaningful(goal: Op, held: list[Op]) -> tuple[list[Op], set[str]]:
    """The ops of a plan that mean something, and the faulty authors."""
    slots = Counter((op.author, op.seq) for op in held)
    faulty = {author for (author, _), count in slots.items() if count > 1}
    good = {goal.id: goal}
    while True:
        made = {task_id(op.id, i): op for op in good.values() if isinstance(op.body, Proposal) for i in range(16)}
        more = [op for op in held if op.id not in good and refers_well(goal, op, good, made)]
        if not more:
            return list(good.values()), faulty
        good.update((op.id, op) for op in more)


def refers_well(goal: Op, op: Op, good: dict[OpId, Op], made: dict[TaskId, Op]) -> bool:
    """Everything that an op refers to is grounded, of the right kind, and earlier."""
    body = op.body
    if isinstance(body, Goal) or op.hlc <= goal.hlc:
        return False

    def is_task(task: TaskId) -> bool:
        if task == goal.id:
            return True
        maker = made.get(task)
        if maker is None or maker.hlc >= op.hlc:
            return False
        return task in [task_id(maker.id, i) for i in range(len(maker.body.steps))]

    def is_a(kind: type, op_id: OpId) -> bool:
        return op_id in good and isinstance(good[op_id].body, kind) and good[op_id].hlc < op.hlc

    match body:
        case Proposal():
            return (
                is_task(body.task)
                and depth_of(body.task, made, goal.id) < DEPTH
                and (not body.base or (is_a(Proposal, body.base) and good[body.base].body.task == body.task))
            )
        case Vote():
            return is_a(Proposal, body.proposal)
        case Claim():
            return is_task(body.task) and (
                not body.prior or (is_a(Claim, body.prior) and good[body.prior].body.task == body.task)
            )
        case Release() | Result():
            return is_a(Claim, body.claim) and good[body.claim].author == op.author
        case Steer():
            if op.author != goal.author:
                return False
            match body.act:
                case Pick() | Veto():
                    return is_a(Proposal, body.act.proposal)
                case Retry() | Note():
                    return is_task(body.act.task)
            return True
        case Unknown():
            return True
    raise AssertionError(body)


def depth_of(task: TaskId, made: dict[TaskId, Op], root: TaskId) -> int:
    """Depth before the tree is known: by way of the proposals that are grounded so far."""
    return 0 if task == root else 1 + depth_of(made[task].body.task, made, root)
