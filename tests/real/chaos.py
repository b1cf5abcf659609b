"""Chaos over real processes and libp2p: harm is done to all but a few, then everything is mended and has to be right.

    python -m tests.real.chaos [--processes 12] [--minutes 3] [--seed 1] [--every 2] [--cable LOSS]

Processes are killed (now and then with the loss of their journal, now and then many at once), stopped for longer than a
lease, and started again under the same identities, while goals are given. With --cable they live on two hosts (network
namespaces; needs root) whose cable loses packets and is pulled out. By hand it prints its figures as JSON;
test_chaos.py runs short ones.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .cable import Cable
from .chaos_measures import Curves
from .process import QUIET, Process, Silent, all_done

CREWS: tuple[dict[str, int], ...] = (
    {"agents.decomposers": 1},
    {"agents.scorers": 1},
    {"agents.scorers": 1, "agents.executors": 1},
    {"agents.executors": 1},
)
SPARED = 4
"""Every so manieth process is never killed, so that what it takes can be followed; it is stopped like all."""
HEAL_S = 300.0
SETTLE_MS = 1_000
"""As by default: with so many hosts on two cores a claim takes half a second to be known to all."""
HARM_S = 2.0
GOALS_PER_HARM = 0.2
SAMPLE_S = 5.0
PATIENT_S = 180.0
"""For an answer: the machine may have more to do than this."""


class Chaos:
    """The processes, the harm that's done to them, what's counted and measured."""

    def __init__(
        self, folder: Path, processes: int, seed: int, cable: Cable | None = None, every: float = HARM_S
    ) -> None:
        """`every`: seconds between two harms."""
        self.rng = random.Random(seed)
        self.every = every
        self.folder = folder
        self.cable = cable
        self.swarm = f"chaos-{seed}-{random.SystemRandom().randrange(1 << 32):x}"
        self.all = [self._process(f"p{n}", n) for n in range(processes)]
        for n, process in enumerate(self.all):
            process.flags |= CREWS[n % len(CREWS)]
        self.spared = self.all[::SPARED]
        self.listeners: list[Process] = []
        self.counts: Counter[str] = Counter()
        self.given: dict[str, Process] = {}
        """Goals, and the process that each was given to; without those that it alone knew when it was killed."""
        self.forgetful: set[str] = set()
        """Peers that came back without (the end of) their journal."""
        self.ended: list[str] = []
        """Processes that ended though nobody had killed them."""
        self.curves = Curves()
        self.due: list[tuple[float, str, Process | None]] = []
        """(when, how to mend, what: None is the cable)."""
        self._began = time.monotonic()
        self._unplugged = False

    def _process(self, name: str, number: int) -> Process:
        if self.cable is None:
            process = Process(self.folder / name, "scorers", self.swarm)
        else:
            within = ["ip", "netns", "exec", self.cable.ends[number % 2]]
            process = Process(self.folder / name, "scorers", self.swarm, ip=self.cable.ips[number % 2], within=within)
        process.flags |= QUIET | {"policy.settle_ms": SETTLE_MS}
        return process

    def __enter__(self) -> Chaos:
        try:
            for process in self.all:
                process.start(self.neighbours(process))
            for process in self.all:
                process.ask("figures", PATIENT_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self.all, *self.listeners]:
            process.kill()

    def neighbours(self, process: Process) -> list[str]:
        """Whom a process is told to join: three others, so that no single death cuts the swarm."""
        at = self.all.index(process)
        ring = [self.all[(at + step) % len(self.all)] for step in (1, 2, 5)]
        return [other.address for other in ring if other is not process]

    # --- harm

    def rage(self, seconds: float) -> None:
        """Do harm for so long. A listener comes when three fifths of it are over."""
        now = time.monotonic()
        end, listener_at = now + seconds, now + 0.6 * seconds
        plans = {self.goal: self.every / GOALS_PER_HARM, self.harm: self.every, self.sample: SAMPLE_S}
        at = dict.fromkeys(plans, now)
        if self.cable is not None:
            plans[self.unplug], at[self.unplug] = 20.0, now + 5
        while (now := time.monotonic()) < end:
            self._mend_due(now)
            self._look_for_dead()
            for act, every in plans.items():
                if now >= at[act]:
                    act()
                    at[act] = time.monotonic() + every * self.rng.uniform(0.5, 1.5)
            if now >= listener_at:
                self.listen()
                listener_at = end + 1
            time.sleep(0.02)

    def healthy(self) -> list[Process]:
        return [process for process in self.all if process.alive and not process.stopped]

    def goal(self) -> None:
        process, title = self.rng.choice(self.healthy()), f"Plan party number {self.counts['goals'] + 1}"
        try:
            process.ask(f"goal {title}", PATIENT_S)
        except Silent:
            self.counts["goals unheard"] += 1
        else:
            self.counts["goals"] += 1
            self.given[title] = process

    def harm(self) -> None:
        well = self.healthy()
        mortal = [process for process in well if process not in self.spared]
        what = self.rng.random()
        if len(well) <= len(self.all) // 2 or not mortal:
            return
        if what < 0.1:
            self.counts["power cuts"] += 1
            for victim in self.rng.sample(mortal, max(1, len(mortal) // 2)):
                self.end(victim)
        elif what < 0.55:
            self.end(self.rng.choice(mortal), self.rng.choice(("", "", "", "journals lost", "journals torn")))
        else:
            victim = self.rng.choice(well)
            victim.signal(signal.SIGSTOP)
            victim.stopped = True
            self.counts["SIGSTOP"] += 1
            self._mend_later(12.0, "go on", victim)

    def end(self, victim: Process, loss: str = "") -> None:
        """SIGKILL a process, perhaps with the loss of its journal or of what was written last; start it again later."""
        self._leave_out_what_only(victim)
        if loss:
            with contextlib.suppress(Silent):
                self.forgetful.update(victim.ask(seconds=PATIENT_S)["members"])
        victim.kill()
        self.counts["SIGKILL"] += 1
        self.counts[loss] += bool(loss)
        if loss == "journals lost":
            victim.forget()
        elif loss:
            victim.tear(self.rng.random())
        self._mend_later(5.0, "start", victim)

    def _leave_out_what_only(self, victim: Process) -> None:
        """Nobody can miss a plan that only a killed process has heard of: it takes up its newest alone, if any."""
        alone = {title for title, process in self.given.items() if process is victim}
        witnesses = [each for each in self.healthy() if each in self.spared and each is not victim] if alone else []
        for witness in witnesses:
            with contextlib.suppress(Silent):
                alone -= set(witness.ask(seconds=PATIENT_S)["goals"])
        for title in alone:
            del self.given[title]
            self.counts["goals cut off"] += 1

    def unplug(self) -> None:
        if self.cable is not None and not self._unplugged:
            self.cable.plug("down")
            self._unplugged = True
            self.counts["partitions"] += 1
            self._mend_later(15.0, "plug in", None)

    def listen(self) -> None:
        """Start a process that only listens."""
        number = len(self.listeners)
        listener = self._process(f"listener{number}", number)
        listener.listen_only = True
        self.listeners.append(listener)
        listener.start([process.address for process in self.spared[:2]])

    def sample(self) -> None:
        for process in [*self.spared, *self.listeners]:
            if process.alive and not process.stopped and process.popen is not None:
                with contextlib.suppress(Silent):
                    figures = process.ask("figures", PATIENT_S)
                    life = f"{process.folder.name}/{process.popen.pid}"
                    self.curves.add(life, time.monotonic() - self._began, figures)

    def _mend_later(self, longest: float, how: str, what: Process | None) -> None:
        self.due.append((time.monotonic() + self.rng.uniform(0.5, longest), how, what))

    def _mend_due(self, now: float) -> None:
        for item in [item for item in self.due if item[0] <= now]:
            self.due.remove(item)
            _, how, process = item
            if process is None:
                if self.cable is not None:
                    self.cable.plug("up")
                self._unplugged = False
            elif how == "start":
                process.start(self.neighbours(process))
                self.counts["restarts"] += 1
            else:
                process.signal(signal.SIGCONT)
                process.stopped = False

    def _look_for_dead(self) -> None:
        killed = {id(process) for _, how, process in self.due if how == "start"}
        for process in [*self.all, *self.listeners]:
            if process.popen is not None and not process.alive and id(process) not in killed:
                code = process.popen.returncode
                self.ended.append(f"{process.folder.name}, code {code}: {_tail(process.folder / 'stderr.txt')}")
                process.popen = None

    # --- and after it

    def heal(self) -> dict[str, Any]:
        """Mend everything; wait until all hold the same and every plan is done; check the properties.

        Returns:
            The state that all have come to.

        Raises:
            AssertionError: it doesn't come to that, or a property doesn't hold.
        """
        self._mend_due(float("inf"))
        self.listen()
        began = time.monotonic()
        while True:
            self._look_for_dead()
            assert not self.ended, self.ended
            states = [process.ask(seconds=PATIENT_S) for process in [*self.all, *self.listeners]]
            prints = {each for state in states for each in (state["fingerprint"], *state["members"].values())}
            if len(prints) == 1 and "seconds to equal sets" not in self.counts:
                self.counts["seconds to equal sets"] = round(time.monotonic() - began)
            if len(prints) == 1 and all(all_done(state) and state["complete"] for state in states):
                break
            assert time.monotonic() - began < HEAL_S, [_short(state) for state in states]
            time.sleep(0.5)
        self.counts["seconds to done"] = round(time.monotonic() - began)
        self._check(states)
        return states[0]

    def _check(self, states: list[dict[str, Any]]) -> None:
        first = states[0]
        lost = self.given.keys() - set(first["goals"])
        assert not lost, f"goals that were given are lost: {lost}"
        assert all(state["pictures"] == first["pictures"] for state in states), "same set, other picture"
        assert all(state["results"] == first["results"] for state in states)
        assert set(first["faulty"]) <= self.forgetful, f"said two things under one number: {first['faulty']}"
        for process, log in self.logs():
            assert "Traceback" not in log, f"{process.folder.name}: {log[-4000:]}"
        went_wrong = [(state["errors"], state["faults"]) for state in states if state["errors"] or state["faults"]]
        assert not went_wrong, went_wrong
        assert [state["sent"] for state in states[len(self.all) :]] == [0] * len(self.listeners), "a listener spoke"
        assert not self.curves.complaints(), self.curves.complaints()

    def logs(self) -> Iterator[tuple[Process, str]]:
        """What each process has logged and printed."""
        for process in [*self.all, *self.listeners]:
            for name in ("node.log", "stderr.txt"):
                file = process.folder / name
                if file.exists():
                    yield process, file.read_text()

    def figures(self, state: dict[str, Any]) -> dict[str, Any]:
        """What happened, as plain data. `state`: what all have come to."""
        again = sum(len(results) - 1 for results in state["work"].values())
        return {name: count for name, count in self.counts.items() if count} | {
            "processes": len(self.all),
            "peers": sum(len(process.ask()["members"]) for process in [*self.all, *self.listeners]),
            "plans": len(state["done"]),
            "ops": state["ops"],
            "results": len(state["work"]),
            "results of work done twice": again,
            "takeovers": state["takeovers"],
            "faulty authors": len(state["faulty"]),
            "warnings logged": dict(Counter(kind for _, log in self.logs() for kind in _warnings(log)).most_common(12)),
            "curves": self.curves.summary(),
        }


def _short(state: dict[str, Any]) -> str:
    return (
        f"{state['fingerprint'][:6]}/{state['ops']} ops/{sum(state['done'].values())} of {len(state['done'])} done/"
        f"{len(set(state['members'].values()))} sets/{'complete' if state['complete'] else 'not complete'}"
    )


def _tail(file: Path) -> str:
    return file.read_text()[-2000:] if file.exists() else ""


def _warnings(log: str) -> Iterator[str]:
    """Which part of the program warned, per line of a log."""
    for line in log.splitlines():
        level, _, rest = line.partition(":")
        if level in ("WARNING", "ERROR", "CRITICAL"):
            yield f"{level} {rest.partition(':')[0]}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--every",
        type=float,
        default=HARM_S,
        help="seconds between two harms; a process that starts costs all of them work",
    )
    parser.add_argument("--cable", type=float, metavar="LOSS", help="two hosts; share of packets that are lost")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the processes' folders here")
    wanted = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = wanted.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cable = None
        if wanted.cable is not None:
            cable = Cable()
            stack.callback(cable.remove)
            if why := cable.lay() or (wanted.cable and cable.lose(wanted.cable)):
                sys.exit(why)
        chaos = stack.enter_context(Chaos(folder, wanted.processes, wanted.seed, cable, wanted.every))
        chaos.rage(wanted.minutes * 60)
        print(json.dumps(chaos.figures(chaos.heal()), indent=1))


if __name__ == "__main__":
    main()
