"""Same set, same picture: whatever the order, the repetitions and the batches; and the naive fold agrees."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from swarmtui.plan.ops import Op
from swarmtui.plan.replica import Replica

from . import naive
from .histories import histories, told
from .naive_grounding import kept

seeds = st.integers(0, 2**32)


def everything(replica: Replica) -> tuple[object, ...]:
    """All that may be compared of a replica."""
    return (
        replica.count,
        replica.fingerprint,
        replica.vector(),
        {plan: replica.picture(plan) for plan in replica.plans},
        sorted(op.id for op in replica.ops() if replica.grounded(op)),
    )


def in_batches(ops: Sequence[Op], rng: random.Random) -> Replica:
    replica = Replica()
    at = 0
    while at < len(ops):
        size = rng.choice((1, 1, 2, 5, 40))
        replica.add_many(ops[at : at + size])
        at += size
    return replica


@given(histories, seeds)
def test_any_order_repetition_and_batching_gives_the_same(ops: list[Op], seed: int) -> None:
    rng = random.Random(seed)
    told = Replica()
    for op in ops:
        told.add(op)
    shuffled = ops + rng.sample(ops, len(ops) // 3)
    rng.shuffle(shuffled)
    assert everything(in_batches(shuffled, rng)) == everything(told)
    assert everything(in_batches(ops[::-1], rng)) == everything(told)


@given(histories, seeds)
def test_the_naive_fold_agrees(ops: list[Op], seed: int) -> None:
    random.Random(seed).shuffle(ops)
    replica = Replica()
    replica.add_many(ops)
    assert {op.id for op in replica.ops()} == set(kept(ops))
    assert {plan: replica.picture(plan) for plan in replica.plans} == naive.pictures(ops)


def test_the_naive_fold_agrees_on_long_histories() -> None:
    """Longer ones than Hypothesis likes: what they reach is checked in test_properties.py."""
    for seed in range(60):
        rng = random.Random(seed)
        ops = told(rng.randbytes(rng.randint(300, 900)))
        expected = naive.pictures(ops)
        rng.shuffle(ops)
        replica = in_batches(ops, rng)
        assert {plan: replica.picture(plan) for plan in replica.plans} == expected


@given(histories, seeds)
def test_replicas_that_swap_what_they_lack_become_equal(ops: list[Op], seed: int) -> None:
    """Without equivocation, for which a vector is blind."""
    rng = random.Random(seed)
    ops = list({(op.plan, op.author, op.seq): op for op in ops}.values())
    one, other = Replica(), Replica()
    one.add_many(rng.sample(ops, rng.randint(0, len(ops))))
    other.add_many(rng.sample(ops, rng.randint(0, len(ops))))
    for _ in range(2):  # a goal that was missing frees what waits for it, and that may be lacking elsewhere
        missing = list(one.lacking(other.vector()))
        other.add_many(missing)
        one.add_many(list(other.lacking(one.vector())))
    assert everything(one) == everything(other)
