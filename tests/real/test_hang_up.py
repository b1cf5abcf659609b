"""A window that is closed: the program ends, whatever its screen is at."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="whether a process waits is read from /proc"),
]
PATIENCE_S = 180
STILL_S = 2
"""The screen's loop wakes ten times a second while it lives."""


def facts(pid: int) -> dict[str, str]:
    """What the system tells of a process's main thread."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def wait_until_it_stands(pid: int) -> None:
    """Until it hears SIGHUP, and its main thread hasn't woken for a while."""
    deadline = time.monotonic() + PATIENCE_S
    seen, since = "", time.monotonic()
    while time.monotonic() < deadline:
        now = facts(pid)
        hears = int(now["SigCgt"], 16) >> (signal.SIGHUP - 1) & 1
        if not hears or now["voluntary_ctxt_switches"] != seen:
            seen, since = now["voluntary_ctxt_switches"], time.monotonic()
        elif time.monotonic() - since >= STILL_S:
            return
        time.sleep(0.05)
    raise AssertionError("its screen's loop never stood still")


def test_a_closed_window_ends_it_even_while_nobody_takes_what_it_draws(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
    options = ["--no-mdns", "--preset", "tiny", "--model", "scripted", "--data-dir", str(tmp_path)]
    program = subprocess.Popen(
        [sys.executable, "-m", "swarmtui", "Plan a party", *options],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=os.environ | {"TERM": "xterm-256color"},
        start_new_session=True,
    )
    try:
        wait_until_it_stands(program.pid)
        program.send_signal(signal.SIGHUP)
        assert program.wait(PATIENCE_S) == 128 + signal.SIGHUP
    finally:
        with contextlib.suppress(ProcessLookupError):
            program.kill()
        program.wait()
        os.close(master)
        os.close(slave)
