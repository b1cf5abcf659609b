"""A storm over real processes and libp2p on loopback: SIGKILL and SIGSTOP every few seconds, restarts, late listeners.

    python -m tests.real.storm [--processes 12] [--minutes 3] [--seed 1]

By hand it prints what happened as JSON; tests/real/test_storm.py runs a short one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swarmtui.plan.envelope import Identity

ANSWER_S = 30.0
HEAL_S = 240.0
ROLES = ("decomposers", "scorers", "scorers", "executors")
QUIET = {"agents.decomposers": 0, "agents.scorers": 0, "agents.executors": 0}
RULES = {"policy.quorum": 2, "policy.lease_s": 5, "policy.patience_s": 10, "policy.settle_ms": 300}


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
            [*self.within, sys.executable, "-m", "tests.real.storm_node", str(file), *extra],
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


class Storm:
    """The processes, what befalls them, and what's measured."""

    def __init__(self, folder: Path, processes: int, seed: int) -> None:
        self.rng = random.Random(seed)
        self.swarm = f"storm-{seed}-{os.getpid()}"
        self.folder = folder
        self.all = [Process(folder / f"p{n}", ROLES[n % len(ROLES)], self.swarm) for n in range(processes)]
        self.counts: Counter[str] = Counter()
        self.forgetful: set[str] = set()
        """Agents that came back without a journal: only they may have contradicted themselves."""
        self.samples: list[dict[str, float]] = []
        self.due: list[tuple[float, str, Process]] = []

    def __enter__(self) -> Storm:
        for process in self.all:
            process.start(self.neighbours(process))
        for process in self.all:
            process.ask(seconds=60)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.all:
            process.kill()

    def neighbours(self, process: Process) -> list[str]:
        at = self.all.index(process)
        ring = [self.all[(at + step) % len(self.all)] for step in (1, 2, 5)]
        return [other.address for other in ring if other is not process]

    def rage(self, seconds: float) -> None:
        """Do harm for so long."""
        end = time.monotonic() + seconds
        harm_at = goal_at = sample_at = time.monotonic()
        while (now := time.monotonic()) < end:
            for item in [item for item in self.due if item[0] <= now]:
                self.due.remove(item)
                self.mend(item[1], item[2])
            if now >= goal_at:
                self.goal()
                goal_at = now + 10
            if now >= harm_at:
                self.harm(now)
                harm_at = now + self.rng.uniform(1.0, 3.0)
            if now >= sample_at:
                self.sample()
                sample_at = now + 5
            time.sleep(0.05)

    def healthy(self) -> list[Process]:
        return [process for process in self.all if process.alive and not process.stopped]

    def goal(self) -> None:
        giver = self.rng.choice(self.healthy())
        try:
            giver.ask(f"goal Plan party number {self.counts['goals'] + 1}")
        except Silent:
            self.counts["unheard goals"] += 1
        else:
            self.counts["goals"] += 1

    def harm(self, now: float) -> None:
        well = self.healthy()
        if len(well) <= len(self.all) // 2:
            return
        victim = self.rng.choice(well)
        if self.rng.random() < 0.6:
            if self.rng.random() < 0.2:
                with contextlib.suppress(Silent):
                    self.forgetful.update(victim.ask()["agents"])
                    victim.kill()
                    victim.forget()
                    self.counts["journals lost"] += 1
            victim.kill()
            self.counts["SIGKILL"] += 1
            self.due.append((now + self.rng.uniform(0.5, 5), "start", victim))
        else:
            victim.signal(signal.SIGSTOP)
            victim.stopped = True
            self.counts["SIGSTOP"] += 1
            self.due.append((now + self.rng.uniform(0.5, 12), "go on", victim))

    def mend(self, how: str, process: Process) -> None:
        if how == "start":
            process.start(self.neighbours(process))
            self.counts["restarts"] += 1
        else:
            process.signal(signal.SIGCONT)
            process.stopped = False

    def sample(self) -> None:
        """Memory, files, threads and tasks of the longest-lived processes."""
        for process in self.healthy()[:3]:
            with contextlib.suppress(Silent):
                state = process.ask()
                self.samples.append({key: state[key] for key in ("rss_kb", "fds", "threads", "tasks", "ops")})

    def heal(self) -> dict[str, Any]:
        """Mend everything; wait until all hold the same and every plan is done. Returns the common state.

        Raises:
            AssertionError: it doesn't come to that, or a property doesn't hold.
        """
        for _, how, process in self.due:
            self.mend(how, process)
        self.due.clear()
        listener = Process(self.folder / "listener", "scorers", self.swarm, listen_only=True)
        listener.flags |= QUIET
        self.all.append(listener)
        listener.start([self.all[0].address, self.all[1].address])
        began = time.monotonic()
        while True:
            states = [process.ask(seconds=60) for process in self.all]
            same = len({state["fingerprint"] for state in states}) == 1
            if same and states[0]["done"] and all(all(state["done"].values()) for state in states):
                break
            if time.monotonic() - began > HEAL_S:
                raise AssertionError(f"not the same within {HEAL_S} s: {[self._short(state) for state in states]}")
            time.sleep(0.5)
        self.counts["seconds to heal"] = round(time.monotonic() - began)
        first = states[0]
        assert all(state["pictures"] == first["pictures"] for state in states), "same set, other picture"
        assert set(first["faulty"]) <= self.forgetful, first["faulty"]
        assert states[-1]["sent"] == 0, "the listener has spoken"
        for process in self.all:
            log = (process.folder / "node.log").read_text() if (process.folder / "node.log").exists() else ""
            assert "Traceback" not in log, log[-3000:]
        return first

    @staticmethod
    def _short(state: dict[str, Any]) -> str:
        return f"{state['fingerprint'][:6]}/{state['ops']} ops/{sum(state['done'].values())}/{len(state['done'])} done"

    def figures(self, state: dict[str, Any]) -> dict[str, Any]:
        figures: dict[str, Any] = dict(self.counts) | {"ops": state["ops"], "plans": len(state["done"])}
        third = max(1, len(self.samples) // 3)
        for key in ("rss_kb", "fds", "threads", "tasks"):
            early = statistics.median(sample[key] for sample in self.samples[:third])
            late = statistics.median(sample[key] for sample in self.samples[-third:])
            figures[key] = {"first third": early, "last third": late}
        return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Storm(Path(folder), wanted.processes, wanted.seed) as storm:
        storm.rage(wanted.minutes * 60)
        print(json.dumps(storm.figures(storm.heal()), indent=1))


if __name__ == "__main__":
    main()
