"""`Changes` says exactly what differs from before."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from swarmtui.plan.canonical import task_picture
from swarmtui.plan.ops import Goal, Op
from swarmtui.plan.replica import Replica

from .histories import histories


def photograph(replica: Replica) -> dict[Any, Any]:
    shot: dict[Any, Any] = {}
    for plan in replica.plans.values():
        shot[plan.id] = (plan.policy, plan.paused, sorted(plan.faulty))
        for task in plan.tasks.values():
            shot[plan.id, task.id] = task_picture(task)
    return shot


@given(histories, st.integers(0, 2**32))
def test_changes_list_what_differs(ops: list[Op], seed: int) -> None:
    rng = random.Random(seed)
    swapped = ops[:]
    for _ in range(len(ops) // 4):  # mostly in order, so that much happens, but not quite
        i, j = rng.randrange(len(ops)), rng.randrange(len(ops))
        swapped[i], swapped[j] = swapped[j], swapped[i]
    replica, before, counting = Replica(), {}, set()
    for op in swapped:
        changes = replica.add(op)
        after = photograph(replica)
        differing = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        now_counting = {op.id for op in replica.ops() if replica.grounded(op)}
        named = changes.tasks | changes.plans
        assert counting <= now_counting, "what means something does so for good"
        assert named == differing or (isinstance(op.body, Goal) and named >= differing)
        assert all(isinstance(key, tuple) for key in changes.tasks)
        assert {op.id for op in changes.added} == now_counting - counting
        assert not replica.add(op)
        before, counting = after, now_counting
