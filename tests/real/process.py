"""A local swarm in a process of its own, which can be asked, killed, stopped and started again as the same peers."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swarmtui.plan.envelope import Identity

ANSWER_S = 120.0
QUIET = {"agents.decomposers": 0, "agents.scorers": 0, "agents.executors": 0}
RULES = {"policy.quorum": 2, "policy.lease_s": 5, "policy.patience_s": 10, "policy.settle_ms": 300}


def all_done(state: dict[str, Any]) -> bool:
    """Whether a process knows of plans, and all of them are done."""
    return bool(state["done"]) and all(state["done"].values())


class Silent(Exception):
    """A process didn't answer in time, or has ended."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """One node, started again and again under the same identity."""

    def __init__(
        self,
        folder: Path,
        role: str,
        swarm: str,
        *,
        listen_only: bool = False,
        ip: str = "127.0.0.1",
        within: Sequence[str] = (),
    ) -> None:
        """`within`: what the command is started by, such as `ip netns exec NAME`."""
        self.folder = folder
        self.within = within
        self.listen_only = listen_only
        (folder / "keys").mkdir(parents=True)
        seed = os.urandom(32)
        # The key of the peer that others dial is made here, so that its address is known before it runs.
        (folder / "keys" / "operator-1.key").write_bytes(seed)
        self.port = free_port()
        self.address = f"/ip4/{ip}/tcp/{self.port}/p2p/{Identity.from_seed(seed).peer_id}"
        self.flags: dict[str, Any] = {
            "model": "scripted",
            "data_dir": str(folder),
            "swarm.name": swarm,
            "swarm.listen": ip,
            "swarm.port": self.port,
            "swarm.mdns": False,
            **RULES,
            **QUIET,
            f"agents.{role}": 1,
        }
        self.popen: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self._buffer = b""

    def start(self, join: list[str]) -> None:
        file = self.folder / "settings.json"
        file.write_text(json.dumps(self.flags | {"swarm.join": join}))
        extra = ["--listen-only"] if self.listen_only else []
        self._buffer = b""
        self.popen = subprocess.Popen(
            [*self.within, sys.executable, "-m", "tests.real.process_main", str(file), *extra],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "stderr.txt").open("ab"),
        )

    @property
    def alive(self) -> bool:
        return self.popen is not None and self.popen.poll() is None

    def ask(self, line: str = "state", seconds: float = ANSWER_S) -> dict[str, Any]:
        """Ask a running process.

        Raises:
            Silent: no answer.
        """
        if not self.alive or self.popen is None or self.popen.stdin is None or self.popen.stdout is None:
            raise Silent(f"{self.folder.name} has ended")
        try:
            self.popen.stdin.write(line.encode() + b"\n")
            self.popen.stdin.flush()
        except BrokenPipeError:
            raise Silent(f"{self.folder.name} has ended") from None
        end = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.popen.stdout], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(self.popen.stdout.fileno(), 1 << 20) if ready else b""
            if not piece:
                raise Silent(f"{self.folder.name} doesn't answer")
            self._buffer += piece
        answer, _, self._buffer = self._buffer.partition(b"\n")
        return dict(json.loads(answer))

    def signal(self, number: int) -> None:
        if self.alive and self.popen is not None:
            self.popen.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        if self.popen is not None:
            self.popen.wait()
            for pipe in (self.popen.stdin, self.popen.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
        self.stopped = False

    def forget(self) -> None:
        """Lose the journal; the keys stay."""
        shutil.rmtree(self.folder / "journals", ignore_errors=True)

    def tear(self, share: float) -> None:
        """Lose what the journal's log holds beyond a share of it, as a power cut may."""
        for log in (self.folder / "journals").glob("*-wal"):
            os.truncate(log, int(log.stat().st_size * share))
