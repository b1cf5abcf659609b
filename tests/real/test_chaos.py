"""One plan under real faults, shortly: what `python -m tests.real.chaos` does by hand for minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cable import Cable
from .chaos import Chaos
from .chaos_measures import Curves

pytestmark = pytest.mark.real


def test_twelve_processes_are_killed_and_stopped_and_agree_in_the_end(tmp_path: Path) -> None:
    with Chaos(tmp_path, processes=12, seed=1) as chaos:
        chaos.rage(20)
        state = chaos.heal()
    assert chaos.counts["SIGKILL"] and chaos.counts["SIGSTOP"] and chaos.counts["restarts"]
    assert state["done"] and len(chaos.listeners) == 2


def test_two_hosts_lose_packets_and_their_cable(tmp_path: Path) -> None:
    cable = Cable()
    try:
        if why := cable.lay() or cable.lose(0.1):
            pytest.skip(why)
        with Chaos(tmp_path, processes=6, seed=2, cable=cable) as chaos:
            chaos.rage(15)
            chaos.heal()
        assert chaos.counts["partitions"]
    finally:
        cable.remove()


def test_what_grows_is_noticed() -> None:
    curves = Curves()
    for at in range(0, 100, 5):
        steady = {"rss_kb": 90_000, "fds": 30, "threads": 2, "tasks": 170, "ops": at}
        curves.add("steady", at, steady)
        curves.add("leaky", at, steady | {"fds": 30 + at, "tasks": 170 + 3 * at})
        if at < 20:
            curves.add("short", at, steady | {"fds": 30 + 9 * at})
    assert [complaint.split(" grew")[0] for complaint in curves.complaints()] == ["leaky: fds", "leaky: tasks"]
    assert curves.summary()["lives measured"] == 2
