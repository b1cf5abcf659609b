"""A real terminal for end-to-end tests: tmux, on a server of its own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import psutil

ENDED = "ended with "


class Terminal:
    """A shell in tmux that runs one program and stays there when it has ended, so that its leavings can be seen."""

    def __init__(self, arguments: list[str], env: Mapping[str, str], size: tuple[int, int] = (120, 36)) -> None:
        self._server = f"swarmtui-{uuid.uuid4().hex[:8]}"
        program = shlex.join([sys.executable, "-m", "swarmtui", *arguments])
        script = f"{program}; echo {ENDED}$?; stty -a | tr ';' '\\n' | grep -o -- '-\\?\\becho\\b'; exec cat"
        self._closed = False
        self._env = {"PATH": os.environ["PATH"], **env}  # a server passes its own environment on
        self._tmux("new-session", "-d", "-c", env["HOME"], "-x", str(size[0]), "-y", str(size[1]), "sh", "-c", script)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if not self._closed:
            for process in self.processes():
                process.kill()
            self.close()

    def close(self) -> None:
        """Close the window, as a person does who has had enough."""
        self._closed = True
        subprocess.run(["tmux", "-L", self._server, "kill-server"], check=False, capture_output=True, env=self._env)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._server, *arguments], check=True, capture_output=True, text=True, env=self._env
        )
        return done.stdout

    @property
    def screen(self) -> str:
        """What is on the screen, as text."""
        return self._tmux("capture-pane", "-p")

    def type(self, *keys: str) -> None:
        """Press keys, by tmux's names ('Enter', 'Escape'); other texts are typed as they are."""
        for key in keys:
            self._tmux("send-keys", *([] if key in ("Enter", "Escape", "Tab", "Down", "Up") else ["-l"]), key)
            time.sleep(0.05)  # a person's pace: a burst of keys after Escape would be one escape sequence

    def until(self, true: Callable[[str], object], seconds: float = 150.0) -> str:
        """The first screen that satisfies, or fail with the last one."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            screen = self.screen
            if true(screen):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s:\n{self.screen}")

    def processes(self) -> list[psutil.Process]:
        """The program and its children."""
        shell = psutil.Process(int(self._tmux("display-message", "-p", "#{pane_pid}")))
        return [process for process in shell.children(recursive=True) if _ours(process)]

    def terminate(self) -> None:
        """Send the program SIGTERM."""
        (program, *_) = self.processes()
        os.kill(program.pid, signal.SIGTERM)


def _ours(process: psutil.Process) -> bool:
    """Not the shell: a fork of it, that is about to become one of the commands after the program, has its arguments."""
    try:
        return process.name() != "sh" and any("swarmtui" in part for part in process.cmdline()[1:4])
    except psutil.NoSuchProcess:
        return False


def own_folders(folder: Path) -> dict[str, str]:
    """An environment in which the program finds nothing of this machine's user."""
    return {
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": os.getcwd(),
        "TERM": "tmux-256color",
        "LC_ALL": "C.UTF-8",
    }
