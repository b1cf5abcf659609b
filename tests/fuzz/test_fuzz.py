"""Some ten thousand hostile inputs, found by Hypothesis: nothing is raised, and what was fed goes on working."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .dice import Dice, SeededDice
from .targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_inputs(name: str) -> None:
    target = TARGETS[name]

    # Half of the choices are Hypothesis's own, which it can make smaller; the others reach further.
    @settings(max_examples=target.examples // 2, suppress_health_check=list(HealthCheck))
    @given(st.binary(min_size=target.octets // 4, max_size=target.octets))
    def found(data: bytes) -> None:
        target.feed(Dice(data), target.each)

    found()
    for seed in range(target.examples - target.examples // 2):
        target.feed(SeededDice((name, seed)), target.each)


def test_there_are_enough_inputs() -> None:
    assert sum(target.examples * target.each for target in TARGETS.values()) >= 10_000
