"""The whole program is killed in mid-plan and started again, with its journal and with what is left of it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from swarmtui.peer.journal import Journal
from swarmtui.plan.ops import Claim, Result
from swarmtui.plan.replica import Replica

from .process import QUIET, Process, all_done
from .process_main import Node
from .terminal import ENDED, Terminal, own_folders

pytestmark = pytest.mark.real

DEADLINE_S = 120.0
EVERYBODY = {"agents.decomposers": 1, "agents.scorers": 2, "agents.executors": 2}
DEEP = {"policy.fan_out": [4, 4], "policy.max_depth": 3}
State = dict[str, Any]


@contextmanager
def processes(*those: Process) -> Iterator[None]:
    try:
        yield
    finally:
        for process in those:
            process.kill()


def until(process: Process, true: Callable[[State], object]) -> State:
    end = time.monotonic() + DEADLINE_S
    while True:
        state = process.ask(seconds=150)
        if true(state):
            return state
        assert time.monotonic() < end, state
        time.sleep(0.05)


def test_killed_again_and_again_it_does_nothing_twice(tmp_path: Path) -> None:
    swarm = f"restart-{os.getpid()}"
    one = Process(tmp_path / "one", "scorers", swarm)
    one.flags |= EVERYBODY | DEEP
    journal = one.folder / "journals" / f"{swarm}.db"
    seen: list[State] = []
    more = 0
    with processes(one):
        one.start([])
        one.ask("goal Plan a party", 150)
        for number in range(3):
            # A scripted plan may have four tasks or twenty, so it can be over before a kill.
            before = until(
                one,
                lambda state: (len(state["work"]) > more or all_done(state)) and len(state["agents"]) == 6,  # noqa: B023
            )
            one.kill()
            kept = _replica(journal)
            assert before["work"].items() <= Node.work(kept)["work"].items(), "nothing is lost"
            one.start([])
            after = one.ask(seconds=150)
            if all(plan.done for plan in kept.plans.values()):  # the newest plan is taken up again unless it's over
                one.ask(f"goal Plan party number {number + 2}", 150)
            else:
                assert set(before["work"]) <= set(after["work"]), "what was done is back from the journal at once"
            seen.append(before)
            more = len(after["work"]) + 2
        last = until(one, lambda state: all_done(state) and len(state["agents"]) == 6)
    work = Node.work(_replica(journal))["work"]
    for before in seen:
        assert last["agents"] == before["agents"], "the same peers"
        assert before["work"].items() <= work.items(), "by the same op, and no other"
    assert all(len(results) == 1 for results in work.values())
    assert not last["faulty"] and not last["faults"] and not last["errors"]
    assert "Traceback" not in (one.folder / "node.log").read_text() + (one.folder / "stderr.txt").read_text()


def counting(state: State) -> dict[str, list[str]]:
    """The result ops of each task that is done, as far as a process knows: without a vote it may not know it done."""
    counted = {result for results in state["results"].values() for result in results}
    return {task: results for task, results in state["work"].items() if set(results) & counted}


def wal_torn(journal: Path) -> None:
    """A power cut: the end of what was written last is missing. SQLite goes on without it, and says nothing."""
    wal = journal.with_name(journal.name + "-wal")
    os.truncate(wal, wal.stat().st_size // 2)


def torn(journal: Path) -> None:
    _settle(journal)
    os.truncate(journal, journal.stat().st_size // 2)


def flipped(journal: Path) -> None:
    _settle(journal)
    data = bytearray(journal.read_bytes())
    for at in range(4096, len(data), 4096):
        data[at : at + 8] = bytes(byte ^ 0xFF for byte in data[at : at + 8])
    journal.write_bytes(data)


def no_database(journal: Path) -> None:
    _settle(journal)  # else SQLite gets everything back from the log beside it
    journal.write_bytes(os.urandom(20_000))


def _settle(journal: Path) -> None:
    """Bring all into the one file."""
    with closing(sqlite3.connect(journal)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_a_torn_journal_is_set_aside_and_filled_again_by_another_process(tmp_path: Path) -> None:
    swarm = f"torn-{os.getpid()}"
    one, two = (Process(tmp_path / name, "scorers", swarm) for name in ("one", "two"))
    one.flags |= EVERYBODY | DEEP
    two.flags |= QUIET
    with processes(one, two):
        two.start([])
        two.ask(seconds=150)
        one.start([two.address])
        one.ask("goal Plan a party", 150)
        work: dict[str, list[str]] = {}
        once: dict[str, list[str]] = {}
        for number, damage in enumerate((wal_torn, torn, flipped, no_database)):
            until(two, lambda state: len(counting(state)) > len(work) or all_done(state))  # noqa: B023
            one.kill()
            known = two.ask()
            work = counting(known)
            if damage is not wal_torn:  # of that one nobody can know
                once |= work
            damage(one.folder / "journals" / f"{swarm}.db")
            one.start([two.address])
            back = until(one, lambda state: set(work) <= set(state["work"]))  # noqa: B023
            told = [notice for notice in back["notices"] if "was damaged" in notice and "set aside" in notice]
            assert bool(told) == (damage is not wal_torn), (damage.__name__, back["notices"])
            assert len(list(one.folder.glob("journals/*.damaged-*[0-9]"))) == number
            if all_done(known):
                one.ask(f"goal Plan party number {number + 2}", 150)
                until(two, lambda state: len(state["done"]) > len(known["done"]))  # noqa: B023
        until(two, all_done)
        last = until(one, lambda state: all_done(state) and len(state["agents"]) == 6)
        other = until(two, lambda state: state["fingerprint"] == last["fingerprint"])
        assert other["pictures"] == last["pictures"]
        assert work.keys() <= counting(last).keys(), "what was done stays done"
        assert once.items() <= last["work"].items(), "and isn't done again"
        assert not last["faulty"] and not last["faults"] and not last["errors"]
    refilled = _replica(one.folder / "journals" / f"{swarm}.db")
    assert refilled.fingerprint.hex() == last["fingerprint"]


def _replica(journal: Path) -> Replica:
    replica = Replica()
    kept = Journal(journal)
    replica.add_many(kept.load())
    kept.close()
    return replica


def test_the_terminal_killed_in_mid_plan_shows_the_plan_again_and_ends_it(tmp_path: Path) -> None:
    assert shutil.which("tmux"), "tmux is needed: apt-get install tmux"
    arguments = ["--preset", "tiny", "--model", "scripted", "--data-dir", str(tmp_path / "swarm")]
    arguments += ["--set", "swarm.mdns=false", "--set", "policy.max_depth=3", "--set", "policy.fan_out=[4, 4]"]
    journal = tmp_path / "swarm" / "journals" / "home.db"
    for _ in range(5):  # one that is over before it's killed shows nothing
        with Terminal(["Plan a party", *arguments], own_folders(tmp_path)) as terminal:
            terminal.until(lambda screen: "Plan a party" in screen and "✔" in screen)
            for process in terminal.processes():
                os.kill(process.pid, signal.SIGKILL)
            terminal.until(lambda screen: f"{ENDED}137" in screen)
        before = _replica(journal)
        plan = max(before.plans.values(), key=lambda plan: plan.op.hlc)
        if not plan.done:
            break
    assert not plan.done
    with Terminal(arguments, own_folders(tmp_path)) as terminal:
        terminal.until(lambda screen: "Plan a party" in screen and "✔ done" in screen)
        for process in terminal.processes():
            os.kill(process.pid, signal.SIGKILL)
    after = _replica(journal)
    end = after.plans[plan.id]
    assert end.done and not end.faulty
    for task in plan.tasks.values():
        if task.result is not None:
            assert _results(after, task.id) == [task.result.id]
    # Nobody new: the agents are those of before.
    assert {op.author for op in after.ops()} >= {op.author for op in before.ops()}
    assert len(list((tmp_path / "swarm" / "keys").iterdir())) == 9


def _results(replica: Replica, task: bytes) -> list[bytes]:
    found = []
    for op in replica.ops():
        if isinstance(op.body, Result):
            claim = replica.get(op.body.claim)
            if claim is not None and isinstance(claim.body, Claim) and claim.body.task == task:
                found.append(op.id)
    return found
