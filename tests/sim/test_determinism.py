"""A seed replays to the same trace, whatever the process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from swarmtui.sim.dice import scenario
from swarmtui.sim.run import run

ASK = """
from swarmtui.sim.dice import scenario
from swarmtui.sim.run import run
for seed in {seeds}:
    print(run(scenario(seed)).digest)
"""
SEEDS = (3, 8, 15, 23)


def in_a_process(hash_seed: str) -> list[str]:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ASK.format(seeds=SEEDS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=900)
    return done.stdout.split()


def test_two_processes_with_other_hashes_agree() -> None:
    one, other = in_a_process("1"), in_a_process("2")
    assert len(one) == len(SEEDS)
    assert one == other
    assert one == [run(scenario(seed)).digest for seed in SEEDS], "nor does it matter what the process did before"


@pytest.mark.parametrize("seed", [0, 1])
def test_seeds_differ(seed: int) -> None:
    assert run(scenario(seed)).digest != run(scenario(seed + 2)).digest


def test_a_scenario_is_drawn_from_its_seed_alone() -> None:
    assert scenario(7) == scenario(7)
    assert scenario(7) != scenario(8)
