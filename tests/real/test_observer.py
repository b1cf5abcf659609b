"""An observer in another process, started late, knows the whole plan and has said nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from swarmtui.config import load
from swarmtui.swarm import Swarm

from .terminal import own_folders

pytestmark = pytest.mark.real
DEADLINE_S = 150.0


def test_a_late_observer_in_another_process_shows_the_same_and_has_sent_nothing(tmp_path: Path) -> None:
    flags = {"model": "scripted", "seed": 3, "swarm.mdns": False, "swarm.name": "watched"}
    swarm = Swarm(load(flags | {"data_dir": str(tmp_path / "here")}, {}, None, "tiny"))
    swarm.start()
    try:
        swarm.give_goal("Plan a party").result(DEADLINE_S)
        end = time.monotonic() + DEADLINE_S
        while not ((plan := swarm.latest.plan) and plan.done):
            assert time.monotonic() < end, swarm.latest
            time.sleep(0.05)
        (address,) = swarm.latest.addresses
        command = ["observe", "--once", "--json", "--join", address, "--no-mdns", "--set", "swarm.name=watched"]
        done = subprocess.run(
            [sys.executable, "-m", "swarmtui", *command, "--data-dir", str(tmp_path / "there")],
            env={"PATH": "", **own_folders(tmp_path)},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        view = swarm.latest
        assert (seen["fingerprint"], seen["ops"]) == (view.fingerprint, view.ops)
        assert seen["plan"]["done"] and seen["complete"]
        assert seen["sent"] == 0
        assert swarm.summary["sent"] > 0
        assert len(view.agents) == 8  # nobody has heard of the observer
    finally:
        assert swarm.stop()
