"""`swarmtui run` against a swarm that the test plays: how it ends, what it writes, what it says."""

from __future__ import annotations

import json
import logging
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from swarmtui import cli
from swarmtui.cli.failure import Terminated
from swarmtui.cli.observe import as_json_line
from swarmtui.config import Config
from swarmtui.plan.ops import Policy
from swarmtui.plan.state import State
from swarmtui.swarm import SwarmError
from swarmtui.swarm.camera import empty
from swarmtui.view import GossipLine, Notice, PlanView, Stall, SwarmView, TaskView

ROOT = bytes(32)


def root(state: State = State.READY, stalled: Stall | None = None) -> TaskView:
    return TaskView(
        id=ROOT,
        parent=None,
        depth=0,
        title="Plan a party",
        detail="",
        state=state,
        branch=False,
        children=(),
        stalled=stalled,
        status=state.value,
        holder="",
        since=0.0,
        output="Cake." if state is State.DONE else "",
        result_by="cleo",
        needs="write",
        after=(),
        notes=(),
        drafts=(),
        history=(),
    )


def plan(done: bool = False, stalled: tuple[Stall, ...] = ()) -> PlanView:
    return PlanView(
        id=ROOT,
        title="Plan a party",
        detail="",
        operator="you",
        mine=True,
        policy=Policy(),
        paused=False,
        done=done,
        stalled=stalled,
        counts={"leaves": 1, "done": int(done), "working": int(not done)},
        root=ROOT,
        tasks={ROOT: root(State.DONE if done else State.READY, stalled[0] if stalled else None)},
        started=1_700_000_000.0,
    )


class PlayedSwarm:
    """Shows the pictures that a test has laid out, one at each look, and the last for ever."""

    script: ClassVar[list[PlanView | BaseException | None]] = []
    refusal: ClassVar[SwarmError | None] = None
    fatal: ClassVar[SwarmError | None] = None
    made: ClassVar[list[PlayedSwarm]] = []

    def __init__(self, config: Config, *, resume: bool) -> None:
        assert not resume
        self.config = config
        self.goals: list[tuple[str, str]] = []
        self.stopped = 0
        self.looks = 0
        self.made.append(self)

    def start(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    def stop(self, timeout: float) -> bool:
        self.stopped += 1
        return True

    def give_goal(self, title: str, detail: str) -> Future[str]:
        self.goals.append((title, detail))
        future: Future[str] = Future()
        future.set_result("given")
        return future

    @property
    def error(self) -> SwarmError | None:
        return self.fatal

    @property
    def latest(self) -> SwarmView:
        step = self.script[min(self.looks, len(self.script) - 1)]
        self.looks += 1
        if isinstance(step, BaseException):
            raise step
        lines = tuple(GossipLine(float(i), f"look {i}", None) for i in range(self.looks))
        notice = Notice("the disk is full", "warning")
        return msgspec.structs.replace(
            empty(self.config), plan=step, gossip=lines, notices=(notice,), version=self.looks
        )

    @property
    def summary(self) -> dict[str, Any]:
        figures = {"failed": 1, "tokens_in": 5, "tokens_out": 7, "seconds": 90, "ops": 9}
        return figures | {
            "calls": {"draft": 2, "work": 3},
            "busy_share": 0.93,
            "unused_share": 0.04,
            "rivals_share": 0.2,
        }


@pytest.fixture
def swarm(monkeypatch: pytest.MonkeyPatch) -> type[PlayedSwarm]:
    monkeypatch.setattr("swarmtui.swarm.Swarm", PlayedSwarm)
    monkeypatch.setattr("swarmtui.cli.run.LOOK_SECONDS", 0.0)
    PlayedSwarm.made, PlayedSwarm.refusal, PlayedSwarm.fatal = [], None, None
    return PlayedSwarm


def run(*arguments: str) -> int:
    return cli.execute(["run", *arguments])


def test_a_done_plan_ends_with_0_and_goes_to_stdout(
    swarm: type[PlayedSwarm], capsys: pytest.CaptureFixture[str]
) -> None:
    swarm.script = [None, plan(), plan(done=True)]
    assert run("Plan a party\nwith cake", "--no-appendix") == 0
    out, err = capsys.readouterr()
    assert out.startswith("# Plan a party\n\n*Done: 1 of 1 tasks")
    assert out.endswith("## The finished plan\n\nCake.\n")
    assert "1.5 min; 5 model calls (draft 2, work 3, 1 failed); 5 tokens in (0 cached), 7 out; 9 ops" in err
    assert "model busy 93% of the time since the goal; of the tokens through it 4% went into nothing" in err
    assert "20% into drafts that were weighed and lost" in err
    assert "warning: the disk is full" in err
    assert err.count("look 0") == 1, "each line is told once"
    assert swarm.made[0].goals == [("Plan a party", "with cake")]
    assert swarm.made[0].stopped == 1


def test_quiet_leaves_the_progress_out(swarm: type[PlayedSwarm], capsys: pytest.CaptureFixture[str]) -> None:
    swarm.script = [plan(), plan(done=True)]
    assert run("Plan a party", "--quiet") == 0
    err = capsys.readouterr().err
    assert "look" not in err
    assert err.count("warning: the disk is full") == 1


@pytest.mark.parametrize(("name", "form", "start"), [("p.md", [], "# "), ("p.json", [], "{"), ("p", ["json"], "{")])
def test_the_file_says_the_form(
    swarm: type[PlayedSwarm], tmp_path: Path, name: str, form: list[str], start: str
) -> None:
    swarm.script = [plan(done=True)]
    file = tmp_path / name
    assert run("Plan a party", "--export", str(file), *(["--format", *form] if form else [])) == 0
    assert file.read_text().startswith(start)
    if start == "{":
        assert json.loads(file.read_text())["done"] is True


def test_a_stalled_plan_ends_with_3_and_each_reason(
    swarm: type[PlayedSwarm], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    food = Stall("“Food”: no executor", "press {add_executor} to add one")
    tea = Stall("“Tea”: 1 scorer, quorum 2: press on", "press {add_scorer} to add a scorer")
    swarm.script = [plan(stalled=(food, tea))]
    file = tmp_path / "plan.md"
    assert run("Plan a party", "--export", str(file), "--set", "run.stall_s=1") == 3
    err = capsys.readouterr().err
    assert "stalled: “Food”: no executor\nstalled: “Tea”: 1 scorer, quorum 2: press on\n" in err
    assert "add_" not in err
    assert "**Stalled:** “Food”: no executor\n" in file.read_text()


def test_observe_tells_the_reasons_alone() -> None:
    stalled = plan(stalled=(Stall("no scorer", "press {add_scorer} to add one"),))
    view = msgspec.structs.replace(empty(Config()), plan=stalled)
    assert json.loads(as_json_line(view, 0))["plan"]["stalled"] == ["no scorer"]


def test_a_stall_that_passes_is_none(swarm: type[PlayedSwarm], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 50))
    monkeypatch.setattr("swarmtui.cli.run.time.monotonic", lambda: next(clock))
    stalled = plan(stalled=(Stall("no scorer", "press {add_scorer} to add one"),))
    swarm.script = [stalled, plan(), stalled, plan(), stalled, plan(done=True)]
    assert run("Plan a party", "--set", "run.stall_s=60", "--quiet") == 0


@pytest.mark.parametrize(("end", "code"), [(KeyboardInterrupt(), 130), (Terminated(15), 143)])
def test_an_interrupted_plan_is_exported_as_far_as_it_is(
    swarm: type[PlayedSwarm], tmp_path: Path, end: BaseException, code: int
) -> None:
    swarm.script = [plan(), end, plan()]
    file = tmp_path / "plan.md"
    assert run("Plan a party", "--export", str(file)) == code
    assert "*Unfinished: 0 of 1" in file.read_text()
    assert swarm.made[0].stopped == 1


def test_interrupted_before_there_is_a_plan(swarm: type[PlayedSwarm], capsys: pytest.CaptureFixture[str]) -> None:
    swarm.script = [None, KeyboardInterrupt(), None]
    assert run("Plan a party") == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert "nothing was exported" in err


def test_an_existing_file_is_refused_before_anything_starts(swarm: type[PlayedSwarm], tmp_path: Path) -> None:
    file = tmp_path / "plan.md"
    file.write_text("mine")
    assert run("Plan a party", "--export", str(file)) == 1
    assert run("Plan a party", "--export", str(tmp_path / "no" / "plan.md")) == 1
    assert swarm.made == []
    assert file.read_text() == "mine"
    swarm.script = [plan(done=True)]
    assert run("Plan a party", "--export", str(file), "--force") == 0
    assert file.read_text().startswith("# Plan a party")


def test_a_swarm_that_cannot_start_says_why_and_what_to_do(
    swarm: type[PlayedSwarm], capsys: pytest.CaptureFixture[str]
) -> None:
    swarm.refusal = SwarmError("no model found", "put a GGUF there")
    assert run("Plan a party") == 1
    assert capsys.readouterr().err == "swarmtui: no model found: put a GGUF there\n"
    assert swarm.made[0].stopped == 1


def test_a_swarm_that_ends_by_itself_ends_the_run(swarm: type[PlayedSwarm], capsys: pytest.CaptureFixture[str]) -> None:
    swarm.script = [plan()]
    swarm.fatal = SwarmError("the engine is gone")
    assert run("Plan a party") == 1
    assert "swarmtui: the engine is gone" in capsys.readouterr().err


def test_the_goal_can_come_from_stdin(swarm: type[PlayedSwarm], monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    swarm.script = [plan(done=True)]
    monkeypatch.setattr("sys.stdin", io.StringIO("Plan a garden\n"))
    assert run("-", "--quiet") == 0
    assert swarm.made[0].goals == [("Plan a garden", "")]


def test_nothing_that_is_logged_reaches_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from swarmtui.cli.running import log_to_file
    from swarmtui.config import load

    before = logging.getLogger().handlers[:], logging.lastResort
    lonely = logging.getLogger("elsewhere.lonely")
    lonely.propagate = False
    try:
        log_to_file(load({"data_dir": str(tmp_path)}))
        lonely.error("a peer is gone")
        logging.getLogger("swarmtui.x").info("hello")
    finally:
        logging.getLogger().handlers[:], logging.lastResort = before
    assert capfd.readouterr() == ("", "")
    text = (tmp_path / "swarmtui.log").read_text()
    assert "a peer is gone" in text
    assert "hello" in text
