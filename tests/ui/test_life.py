"""Start, goal, end."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from textual.widgets import Static

from swarmtui.ui.app import SwarmApp
from swarmtui.ui.screens.failed import LeavingScreen
from swarmtui.view import KeptPlan

from .driving import NARROW, WIDE, Driver, drive
from .sample import NOW, FakeSwarm, SampleConfig, crew, japan, nothing, view_of

HERE = Path(__file__).parent


def test_who_joins_a_swarm_isnt_asked_for_a_goal() -> None:
    async def scenario(d: Driver) -> None:
        assert d.screen == "MainScreen"
        assert "press n and give the swarm a goal" in d.text()

    drive(scenario, joins=True)


def test_the_swarm_starts_off_the_screens_thread_and_is_stopped() -> None:
    swarm = FakeSwarm(view_of(japan()))

    async def scenario(d: Driver) -> None:
        assert swarm.start_thread is not threading.main_thread()

    drive(scenario, swarm=swarm)
    assert swarm.stopped


def test_the_screen_is_there_while_the_swarm_starts() -> None:
    class Slow(FakeSwarm):
        gate = threading.Event()

        def start(self, model: str = "") -> None:
            assert self.gate.wait(30)

    swarm = Slow()

    async def scenario(d: Driver) -> None:
        assert "starting · loading model" in d.text()
        await d.press("d")
        assert "still starting" in d.toasts()[0]
        assert swarm.asked == []
        swarm.gate.set()
        await d.until(lambda: d.app.started)
        await d.settle()
        assert "loading model" not in d.text()

    drive(scenario, swarm=swarm, start=False)


def test_a_start_that_fails_says_why_and_exits_1() -> None:
    class NoModel(Exception):
        remedy = "Put a GGUF file into [/models]."

    swarm = FakeSwarm()
    swarm.start_error = NoModel("No model was found.")

    async def scenario(d: Driver) -> None:
        await d.until(lambda: d.screen == "FailedScreen")
        await d.settle()
        assert "No model was found." in d.text()
        assert "[/models]" in d.text()
        await d.press("q")

    assert drive(scenario, swarm=swarm).return_code == 1


def test_the_goal_of_the_command_line_is_given_at_once() -> None:
    async def scenario(d: Driver) -> None:
        assert d.swarm.asked == [("give_goal", "Plan a trip", "In April")]
        assert d.screen == "MainScreen"

    drive(scenario, goal="Plan a trip\nIn April")


def test_a_goal_of_the_command_line_that_cannot_be_opens_the_form() -> None:
    async def scenario(d: Driver) -> None:
        assert d.swarm.asked == []
        assert d.screen == "GoalForm"
        assert "is empty" in d.toasts()[0]

    drive(scenario, goal=" ")


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_without_a_plan_it_asks_for_a_goal(size: tuple[int, int]) -> None:
    async def scenario(d: Driver) -> None:
        assert d.screen == "GoalForm"
        assert "SmolLM2-135M" in d.text()
        assert "laptop" in d.text()
        await d.press("enter")
        assert "is empty" in d.text()
        await d.press(*"Learn", "space", *"Go", "ctrl+j", *"fast", "enter")
        assert d.swarm.asked == [("give_goal", "Learn Go", "fast")]
        assert d.screen == "MainScreen"

    drive(scenario, nothing(), size)


def test_who_is_asked_for_a_goal_is_told_of_plans_left_behind() -> None:
    async def scenario(d: Driver) -> None:
        assert "1 plan: esc, then : to take one up" in d.text()
        await d.press("escape")
        assert "1 plan, press : to choose" in d.text()

    drive(scenario, msgspec.structs.replace(nothing(), kept=(KeptPlan(b"left", "Left behind", NOW),)))


def test_the_form_tells_of_agents_that_come_while_it_is_open() -> None:
    async def scenario(d: Driver) -> None:
        assert "decomposer" not in str(d.app.screen.query_one("#goal-told", Static).content)
        d.swarm.change(agents=crew())
        await d.until(lambda: "1 decomposer, 1 scorer, 2 executors" in d.text())

    drive(scenario, nothing())


def test_the_form_shows_how_a_long_goal_is_taken() -> None:
    async def scenario(d: Driver) -> None:
        await d.type("Plan a trip. " * 40)
        assert "Plan a trip." in d.text()
        assert "the detail holds it all" in d.text()
        await d.type("x" * 10_000)
        assert "may have 4,000" in d.text()
        await d.press("enter")
        assert d.swarm.asked == []

    drive(scenario, nothing())


def test_a_bug_on_the_screen_prints_no_variables(capsys: pytest.CaptureFixture[str]) -> None:
    class Bug(Exception):
        pass

    app: list[SwarmApp] = []

    async def scenario(d: Driver) -> None:
        app.append(d.app)
        secret = "correct horse battery staple"

        def fail() -> None:
            held = secret
            raise Bug(f"{len(held)}")

        d.app.call_later(fail)
        await d.pilot.pause()

    with pytest.raises(Bug):
        drive(scenario, view_of(japan()))
    assert app[0].return_code == 1
    told = "".join(str(item) for item in app[0]._exit_renderables) + "".join(capsys.readouterr())
    assert "Bug: 28" in told
    assert "battery" not in told


CHILD = """
import sys
from ui.sample import FakeSwarm, SampleConfig, japan, view_of
from swarmtui.ui.app import run_app
swarm = FakeSwarm(view_of(japan()))
code = run_app(swarm, SampleConfig())
print("stopped" if swarm.stopped else "not stopped", flush=True)
sys.exit(code)
"""


@pytest.mark.parametrize(("signals", "code"), [([signal.SIGTERM], 143), ([signal.SIGINT, signal.SIGINT], 130)])
def test_signals_leave_a_clean_terminal(signals: list[signal.Signals], code: int) -> None:
    parent, child = pty.openpty()
    path = os.pathsep.join([str(HERE.parent), str(HERE.parent.parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "36"}
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=child, stdout=child, stderr=child, env=environment, start_new_session=True
    )
    os.close(child)
    try:
        written = _read_until(parent, b"Compare fares")
        for number, sent in enumerate(signals):
            process.send_signal(sent)
            if number + 1 < len(signals):
                written += _read_until(parent, b"Quit?")
        written += _read_until(parent, b"stopped")
        assert process.wait(30) == code
    finally:
        process.kill()
        process.wait()
        os.close(parent)
    end = written[written.rindex(b"\x1b[?1049h") :]
    assert b"\x1b[?1049l" in end  # back from the alternate screen
    assert b"\x1b[?25h" in end  # the cursor shows again
    assert b"not stopped" not in end


def _read_until(file: int, words: bytes) -> bytes:
    data = b""
    while words not in data:
        ready, _, _ = select.select([file], [], [], 60)
        assert ready, f"{words!r} didn't come"
        try:
            data += os.read(file, 65536)
        except OSError:  # the child has gone
            break
    assert words in data
    return data


def test_a_window_closed_while_the_agents_say_goodbye_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself: Textual's own goodbye would wait for a writer that's dead."""
    codes: list[int] = []
    ended = threading.Event()

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    class Slow(FakeSwarm):
        gate = threading.Event()

        def stop(self, timeout: float = 10.0) -> bool:
            assert self.gate.wait(60)
            return super().stop(timeout)

    swarm = Slow()
    monkeypatch.setattr(os, "_exit", end)

    async def scenario(d: Driver) -> None:
        d.app.leave()
        await d.until(lambda: isinstance(d.app.screen, LeavingScreen))
        d.app._hang_up()
        swarm.gate.set()

    drive(scenario, swarm=swarm)
    assert ended.wait(60)
    assert codes == [128 + signal.SIGHUP]


def test_the_configuration_is_checked_before_the_screen_opens() -> None:
    with pytest.raises(ValueError, match=r"keys\.explode"):
        SwarmApp(FakeSwarm(), SampleConfig(keys={"explode": "b"}))
