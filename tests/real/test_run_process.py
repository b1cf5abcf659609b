"""`swarmtui run` as people start it: a process of its own, real libp2p on loopback, the scripted model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

DEADLINE_S = 120


@contextmanager
def process(tmp_path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "swarmtui", "run", "Plan a party", "--model", "scripted", "--seed", "7"]
    command += ["--preset", "tiny", "--no-mdns", "--data-dir", str(tmp_path / "data"), *arguments]
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the tests may run under nohup
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def wait_for(child: subprocess.Popen[str], words: str) -> list[str]:
    """Read stderr until a line has the words; fails when the process ends before."""
    lines = []
    assert child.stderr is not None
    for line in child.stderr:
        lines.append(line)
        if words in line:
            return lines
    raise AssertionError("".join(lines))


def test_a_plan_is_made_and_every_leaf_has_a_result(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    with process(tmp_path, "--export", str(file)) as child:
        out, err = child.communicate(timeout=DEADLINE_S)
    assert child.returncode == 0, err
    assert out == ""
    facts = json.loads(file.read_text())
    assert facts["done"]
    assert facts["tasks"][0]["output"], "the finished plan"
    assert all(task["output"] for task in facts["tasks"] if not task["branch"])
    assert "model calls" in err
    kept = subprocess.run(
        [sys.executable, "-m", "swarmtui", "plans", "--json", "--data-dir", str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert json.loads(kept.stdout)["id"] == facts["id"]


def test_without_executors_it_stalls(tmp_path: Path) -> None:
    with process(tmp_path, "--set", "agents.executors=0", "--set", "run.stall_s=1") as child:
        out, err = child.communicate(timeout=DEADLINE_S)
    assert child.returncode == 3, err
    assert "stalled: " in err
    assert "no executor" in err
    assert "**Stalled:**" in out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_exports_what_there_is(tmp_path: Path, number: int, code: int) -> None:
    file = tmp_path / "plan.md"
    with process(tmp_path, "--set", "agents.executors=0", "--export", str(file)) as child:
        wait_for(child, "approved")
        os.kill(child.pid, number)
        _, err = child.communicate(timeout=DEADLINE_S)
    assert child.returncode == code, err
    assert "Traceback" not in err
    assert file.read_text().startswith("# Plan a party\n\n*")
