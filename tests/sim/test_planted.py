"""Proof that the tests bite: each planted bug is found within a bounded number of seeds, and not without it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from swarmtui.plan.envelope import seal
from swarmtui.plan.ops import Claim, Op
from swarmtui.plan.replica import Replica
from swarmtui.sim.dice import scenario
from swarmtui.sim.run import run
from swarmtui.sim.scenario import Crash, Cut, Said, Scenario, Weather
from tests.plan import naive
from tests.plan.histories import CREW as CREW_KEYS
from tests.plan.histories import told

from .planted import BUGS, Bug
from .scenes import CREW, EXECUTOR, HEAL_S, SCORER, oracle, scene

SHORT = {"finish_s": 500.0, "settle_s": 150.0}
"""So a plan that stalls doesn't cost half an hour."""
HISTORIES = 400
"""Random histories that a bug of the fold must be found in."""

SCENES: dict[str, Scenario] = {
    "a dead holder": scene(Crash(member=EXECUTOR, when=Said(kind="claim", then_s=1.0)), seed=4),
    "a failing model": scene(members={who: {"fails": 1.0} for who in (EXECUTOR, EXECUTOR + 1)}),
    "a clock far ahead": scene(
        crew=(*CREW, "hostile", "hostile"),
        members={number: {"tricks": ("future",), "every_s": 1.0} for number in (7, 8)},
    ),
    "a late listener": scene(crew=(*CREW, "observer"), members={7: {"joins_s": HEAL_S + 10}}),
    "a lossy listener": scene(Weather(at=0, until=HEAL_S, loss=0.6)),
    "an observer": scene(Cut(at=10, until=30, shape="halves")),
    "all at once": scene(*(Crash(member=who, when=14.0, back_s=1.0 + who / 10) for who in range(len(CREW)))),
    "a restart with journal": scene(Crash(member=SCORER, when=Said(kind="vote"), back_s=1.0), policy={"max_depth": 3}),
    "hostile claimers": scene(
        crew=(*CREW, "hostile", "hostile"),
        members={number: {"tricks": ("claim_all",), "every_s": 2.0} for number in (7, 8)},
        hostile_stay=True,
    ),
    "nothing is good enough": scene(policy={"pass_mark": 100}),
}


def hunted(bug: Bug) -> Iterator[tuple[int, Scenario]]:
    if bug.scene:
        drawn = [msgspec.structs.replace(SCENES[bug.scene], seed=seed) for seed in range(1, 4)]
    else:
        drawn = [scenario(seed, (5, 9), bug.faults) for seed in range(bug.seeds)]
    for number, each in enumerate(drawn):
        yield number, each if bug.scene == "hostile claimers" else msgspec.structs.replace(each, **SHORT)


def found_in_swarms(bug: Bug) -> str:
    """Which rule noticed it, and in which seed; and the same seed is good without it. A patch that doesn't fit the code
    any more ends in an exception, which finds nothing."""
    for number, each in hunted(bug):
        with pytest.MonkeyPatch.context() as patch:
            bug.plant(patch)
            rules = {violation.rule for violation in run(each, oracle=oracle).violations}
        if rules:
            sound = run(each, oracle=oracle).violations
            assert not sound, f"without the bug: {sound}"
            return f"simulator: {', '.join(sorted(rules))} (run {number + 1})"
    return ""


def with_twins(ops: list[Op], rng: random.Random) -> list[Op]:
    """Let some claims have a rival of the same instant."""
    twins = [
        seal(rng.choice(CREW_KEYS), op.plan, 60_000 + number, op.hlc, op.body)
        for number, op in enumerate(ops)
        if isinstance(op.body, Claim) and rng.random() < 0.3
    ]
    return ops + twins


def found_in_histories(bug: Bug) -> str:
    """Random histories in changing orders against the naive fold."""
    for number in range(HISTORIES):
        rng = random.Random(f"planted/{number}")
        with pytest.MonkeyPatch.context() as patch:
            ops = with_twins(told(rng.randbytes(rng.randint(60, 400))), rng)
            bug.plant(patch)
            mixed = rng.sample(ops, len(ops))
            replica = Replica()
            for op in mixed:
                replica.add(op)
            pictures = {plan: replica.picture(plan) for plan in replica.plans}
        if pictures != naive.pictures(ops):
            sound = Replica()
            sound.add_many(mixed)
            assert {plan: sound.picture(plan) for plan in sound.plans} == naive.pictures(ops)
            return f"property tests: another picture (history {number + 1})"
    return ""


def caught_by(bug: Bug) -> str:
    return found_in_histories(bug) if bug.hunt == "fold" else found_in_swarms(bug)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    caught = caught_by(bug)
    print(caught)
    assert caught


def test_there_are_enough() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 20


def test_the_page_lists_them() -> None:
    page = (Path(__file__).parent / "README.md").read_text("utf-8")
    assert [bug.name for bug in BUGS if f"| {bug.name} |" not in page] == []


if __name__ == "__main__":  # the table for README.md
    for each in BUGS:
        print(f"| {each.name} | {caught_by(each)} |")
