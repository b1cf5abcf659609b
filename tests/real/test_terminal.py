"""The program as a person uses it: typed at in a real terminal, over real libp2p."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil
import pytest

from .terminal import ENDED, Terminal, own_folders

pytestmark = pytest.mark.real


def program(folder: Path, *arguments: str, size: tuple[int, int] = (120, 36)) -> Terminal:
    assert shutil.which("tmux"), "tmux is needed: apt-get install tmux"
    quiet = ["--preset", "tiny", "--data-dir", str(folder / "swarm"), "--set", "swarm.mdns=false"]
    return Terminal([*arguments, *quiet], own_folders(folder), size)


def ended(screen: str) -> bool:
    return ENDED in screen


def test_a_goal_agents_that_come_and_crash_an_export_and_goodbye(tmp_path: Path) -> None:
    with program(tmp_path, "--model", "scripted") as terminal:
        terminal.until(lambda screen: "What should the swarm plan?" in screen)
        terminal.type("Plan a party [/foo]", "Enter")
        terminal.until(lambda screen: "Plan a party [/foo]" in screen and "working" in screen)
        terminal.type("s")
        terminal.type("e")
        terminal.until(lambda screen: "─ 10 ─╯" in screen)  # the agents panel counts: eight and two more
        # Crash whichever executor holds a task, or one that doesn't if all is done by now.
        terminal.type("2", "G", "X")
        terminal.until(lambda screen: "crashed" in screen or "silent" in screen)
        terminal.until(lambda screen: "✔ done" in screen)
        terminal.type("w")
        terminal.until(lambda screen: "Export" in screen and ".md" in screen)
        terminal.type("Enter")
        terminal.until(lambda screen: "Exported to" in screen)
        terminal.type("q")
        screen = terminal.until(lambda screen: ended(screen) or "Quit" in screen)
        if not ended(screen):
            terminal.type("y")
            screen = terminal.until(ended)
        assert f"{ENDED}0" in screen
        assert not terminal.processes()
    (exported,) = tmp_path.rglob("*.md")
    text = exported.read_text()
    assert "Plan a party" in text and "How this plan was decided" in text


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
def test_sigterm_leaves_the_terminal_clean(tmp_path: Path, size: tuple[int, int]) -> None:
    with program(tmp_path, "Plan a party", "--model", "scripted", size=size) as terminal:
        terminal.until(lambda screen: "✔" in screen)
        terminal.terminate()
        screen = terminal.until(ended)
        assert f"{ENDED}143" in screen
        assert "\necho\n" in terminal.until(lambda text: "echo\n" in text)  # the line discipline echoes again
        assert not terminal.processes()


def test_a_terminal_that_goes_away_takes_the_program_along(tmp_path: Path) -> None:
    with program(tmp_path, "Plan a picnic") as terminal:
        terminal.until(lambda screen: "drafting" in screen, 120)
        processes = terminal.processes()
        assert len(processes) > 1
        terminal.close()
        _, alive = psutil.wait_procs(processes, timeout=30)
        assert not alive


def test_the_bundled_model_is_watched_at_work_and_its_child_ends_too(tmp_path: Path) -> None:
    with program(tmp_path, "Plan a picnic") as terminal:
        terminal.until(lambda screen: "drafting" in screen, 120)
        assert len(terminal.processes()) > 1
        terminal.type("q")
        terminal.until(lambda screen: "Quit" in screen)
        terminal.type("y")
        screen = terminal.until(ended)
        assert f"{ENDED}0" in screen
        assert not terminal.processes()
