"""One author's flood doesn't make others' ops dear: the work per op is counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from swarmtui.plan.envelope import seal
from swarmtui.plan.ops import Body, Claim, Note, Op, Pick, Proposal, Release, Result, Steer, Step, Vote

from .tale import ADA, BOB, DORA, EVA, MARKS, MS, OPERATOR, START, Tale, leaves, missing

FLOOD = 3_000


def calls(run: Callable[[], Any]) -> int:
    """How many lines and calls of Python a run takes."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def waiting(tale: Tale) -> Iterator[Body]:
    """Votes on a draft that never comes."""
    while True:
        yield Vote(missing(), True, MARKS)


def waiting_each_for_another(tale: Tale) -> Iterator[Body]:
    for i in range(10 * FLOOD):
        yield Claim(tale.goal.id, i.to_bytes(32, "big"))


def votes(tale: Tale) -> Iterator[Body]:
    draft = tale.draft()
    while True:
        yield Vote(draft.id, True, MARKS)
        yield Vote(draft.id, False, MARKS)


def votes_ever_earlier(tale: Tale) -> Iterator[Body]:
    draft = tale.draft()
    while True:
        yield Vote(draft.id, True, MARKS)


def claims(tale: Tale) -> Iterator[Body]:
    task = tale.split()[0]
    while True:
        yield Claim(task)


def claims_on_a_prior(tale: Tale) -> Iterator[Body]:
    task = tale.split()[0]
    claim = tale.claim(task)
    while True:
        yield Claim(task, claim.id)


def drafts(tale: Tale) -> Iterator[Body]:
    while True:
        yield Proposal(tale.goal.id, leaves(2))


def releases_and_results(tale: Tale) -> Iterator[Body]:
    task = tale.split()[0]
    claim = tale.claim(task)
    while True:
        yield Release(claim.id)
        yield Result(claim.id, "again")


def picks(tale: Tale) -> Iterator[Body]:
    drafts = [tale.draft(), tale.draft()]
    while True:
        for draft in drafts:
            yield Steer(Pick(draft.id))


FLOODS = [
    (waiting, EVA, 1),
    (waiting_each_for_another, EVA, 1),
    (votes, BOB, 1),
    (votes_ever_earlier, BOB, -1),
    (claims, EVA, 1),
    (claims, EVA, -1),
    (claims_on_a_prior, DORA, 1),
    (claims_on_a_prior, DORA, -1),
    (drafts, ADA, 1),
    (drafts, ADA, -1),
    (releases_and_results, EVA, 1),
    (releases_and_results, EVA, -1),
    (picks, OPERATOR, 1),
]


@pytest.mark.parametrize(("flood", "who", "direction"), FLOODS)
def test_the_cost_of_an_op_doesn_t_grow_with_a_flood(flood: Any, who: Any, direction: int) -> None:
    tale = Tale(need=1)
    bodies = flood(tale)
    first = next(bodies)
    seqs = iter(range(tale.replica.next_seq(tale.goal.id, who.peer_id), 1 << 16))
    middle = START + 10 * FLOOD * MS

    def op(body: Body, i: int) -> Op:
        return seal(who, tale.goal.id, next(seqs), middle + direction * i * MS, body)

    replica = tale.replica
    ops = [op(first, 0), *(op(next(bodies), i) for i in range(1, FLOOD + 8))]
    replica.add_many(ops[:100])
    early = max(calls(lambda one=one: replica.add(one)) for one in ops[100:108])
    replica.add_many(ops[108:FLOOD])
    late = max(calls(lambda one=one: replica.add(one)) for one in ops[FLOOD:])
    assert late <= 1.5 * early + 50


def test_what_waited_is_grounded_in_one_go() -> None:
    tale = Tale()
    draft = seal(ADA, tale.goal.id, 0, START + 5 * MS, Proposal(tale.goal.id, leaves(2)))
    tale.replica.add_many(
        seal(BOB, tale.goal.id, i, START + (6 + i) * MS, Vote(draft.id, i % 2 > 0, MARKS)) for i in range(FLOOD)
    )
    assert len(tale.replica.add(draft).added) == FLOOD + 1


def test_an_op_costs_the_same_in_a_small_and_in_a_large_plan() -> None:
    def cost(large: bool) -> list[int]:
        tale = Tale(need=1, max_depth=3)
        outer = _grown(tale) if large else tale.split(None, *leaves(16))
        task = outer[0]
        found = [calls(lambda: tale.claim(task, EVA))]
        claim = tale.ops[-1]
        found.append(calls(lambda: tale.finish(claim)))
        found.append(calls(lambda: tale.steer(Note(task, "well done"))))
        return found

    assert all(b <= a * 1.3 + 50 for a, b in zip(cost(False), cost(True), strict=True))


def _grown(tale: Tale) -> list[bytes]:
    """A plan with about 4,000 live tasks; the tasks of its deepest split."""
    last: list[bytes] = []
    for middle in tale.split(None, *(Step(f"{i}") for i in range(16))):
        for inner in tale.split(middle, *(Step(f"{i}") for i in range(16))):
            last = tale.split(inner, *leaves(16))
    return last
