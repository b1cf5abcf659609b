"""Swarms of 5 to 12 under faults drawn from a seed, several hundred of them: what has to hold holds in each.

A seed that fails here is looked at with `swarmtui simulate --seed S --trace`.
"""

from __future__ import annotations

import os

import pytest

from swarmtui.sim.dice import KINDS, scenario
from swarmtui.sim.figures import Figures, many
from swarmtui.sim.run import run

from .scenes import oracle

SEEDS = int(os.environ.get("SWARMTUI_SEEDS", "300"))


def test_hundreds_of_seeds() -> None:
    figures = Figures()
    for outcome in many(range(SEEDS), (5, 12), jobs=min(4, os.cpu_count() or 1)):
        figures.add(outcome)
    told = figures.told()
    print(told)
    assert not figures.bad, [(bad.seed, bad.violations[:2]) for bad in figures.bad]
    assert told["runs"] == SEEDS
    assert told["takeovers"], "the faults bite"


@pytest.mark.parametrize("kind", KINDS)
def test_the_naive_fold_agrees_with_what_swarms_say(kind: str) -> None:
    """Ops from real agents under a fault, folded again by the second, naive fold."""
    for seed in range(1000, 1004):
        outcome = run(scenario(seed, (5, 8), (kind,)), oracle=oracle)
        assert outcome.good, (seed, outcome.violations[:2])
