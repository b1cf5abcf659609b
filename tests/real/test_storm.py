"""One plan under real faults: processes are killed and stopped every few seconds, and in the end all agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from .storm import Process, Storm

pytestmark = pytest.mark.real


def test_a_short_storm(tmp_path: Path) -> None:
    with Storm(tmp_path, processes=8, seed=5) as storm:
        storm.rage(20)
        state = storm.heal()
    assert storm.counts["SIGKILL"] and storm.counts["SIGSTOP"] and storm.counts["restarts"]
    assert state["done"]


def test_a_program_killed_in_mid_plan_goes_on_where_it_was(tmp_path: Path) -> None:
    one = Process(tmp_path / "one", "scorers", "restart")
    one.flags |= {"agents.decomposers": 1, "agents.scorers": 2, "agents.executors": 1, "policy.fan_out": [4, 4]}
    try:
        one.start([])
        one.ask("goal Plan a party", 60)
        while not any(one.ask()["results"].values()):
            pass  # each question takes a while
        before = one.ask()
        (plan,) = before["results"]
        assert not before["done"][plan]
        one.kill()
        one.start([])
        after = one.ask(seconds=60)
        while not (after["done"].get(plan) and len(after["agents"]) == len(before["agents"])):
            after = one.ask()
        # The same peers, and what was done stays done by the same op.
        assert after["agents"] == before["agents"]
        assert set(before["results"][plan]) <= set(after["results"][plan])
        assert not after["faulty"] and not after["faults"]
    finally:
        one.kill()
