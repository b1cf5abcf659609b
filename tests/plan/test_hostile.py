"""One author's flood doesn't make others' ops dear: the work per op is counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from swarmtui.plan.envelope import seal
from swarmtui.plan.ops import Body, Claim, Note, Op, Pick, Proposal, Release, Result, Steer, Step, Vote

from .scene import ADA, BOB, DORA, EVA, MARKS, MS, OPERATOR, START, Scene, leaves, missing

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


def waiting(scene: Scene) -> Iterator[Body]:
    """Votes on a draft that never comes."""
    while True:
        yield Vote(missing(), True, MARKS)


def waiting_each_for_another(scene: Scene) -> Iterator[Body]:
    for i in range(10 * FLOOD):
        yield Claim(scene.goal.id, i.to_bytes(32, "big"))


def votes(scene: Scene) -> Iterator[Body]:
    draft = scene.draft()
    while True:
        yield Vote(draft.id, True, MARKS)
        yield Vote(draft.id, False, MARKS)


def votes_ever_earlier(scene: Scene) -> Iterator[Body]:
    draft = scene.draft()
    while True:
        yield Vote(draft.id, True, MARKS)


def claims(scene: Scene) -> Iterator[Body]:
    task = scene.split()[0]
    while True:
        yield Claim(task)


def claims_on_a_prior(scene: Scene) -> Iterator[Body]:
    task = scene.split()[0]
    claim = scene.claim(task)
    while True:
        yield Claim(task, claim.id)


def drafts(scene: Scene) -> Iterator[Body]:
    while True:
        yield Proposal(scene.goal.id, leaves(2))


def releases_and_results(scene: Scene) -> Iterator[Body]:
    task = scene.split()[0]
    claim = scene.claim(task)
    while True:
        yield Release(claim.id)
        yield Result(claim.id, "again")


def picks(scene: Scene) -> Iterator[Body]:
    drafts = [scene.draft(), scene.draft()]
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
    scene = Scene(need=1)
    bodies = flood(scene)
    first = next(bodies)
    seqs = iter(range(scene.replica.next_seq(scene.goal.id, who.peer_id), 1 << 16))
    middle = START + 10 * FLOOD * MS

    def op(body: Body, i: int) -> Op:
        return seal(who, scene.goal.id, next(seqs), middle + direction * i * MS, body)

    replica = scene.replica
    ops = [op(first, 0), *(op(next(bodies), i) for i in range(1, FLOOD + 8))]
    replica.add_many(ops[:100])
    early = max(calls(lambda one=one: replica.add(one)) for one in ops[100:108])
    replica.add_many(ops[108:FLOOD])
    late = max(calls(lambda one=one: replica.add(one)) for one in ops[FLOOD:])
    assert late <= 1.5 * early + 50


def test_what_waited_is_grounded_in_one_go() -> None:
    scene = Scene()
    draft = seal(ADA, scene.goal.id, 0, START + 5 * MS, Proposal(scene.goal.id, leaves(2)))
    scene.replica.add_many(
        seal(BOB, scene.goal.id, i, START + (6 + i) * MS, Vote(draft.id, i % 2 > 0, MARKS)) for i in range(FLOOD)
    )
    assert len(scene.replica.add(draft).added) == FLOOD + 1


def test_an_op_costs_the_same_in_a_small_and_in_a_large_plan() -> None:
    def cost(large: bool) -> list[int]:
        scene = Scene(need=1, max_depth=3)
        outer = _grown(scene) if large else scene.split(None, *leaves(16))
        task = outer[0]
        found = [calls(lambda: scene.claim(task, EVA))]
        claim = scene.ops[-1]
        found.append(calls(lambda: scene.finish(claim)))
        found.append(calls(lambda: scene.steer(Note(task, "well done"))))
        return found

    assert all(b <= a * 1.3 + 50 for a, b in zip(cost(False), cost(True), strict=True))


def _grown(scene: Scene) -> list[bytes]:
    """A plan with about 4,000 live tasks; the tasks of its deepest split."""
    last: list[bytes] = []
    for middle in scene.split(None, *(Step(f"{i}") for i in range(16))):
        for inner in scene.split(middle, *(Step(f"{i}") for i in range(16))):
            last = scene.split(inner, *leaves(16))
    return last
