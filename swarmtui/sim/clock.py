"""Virtual time: it passes only while every task waits, and then it jumps to the next moment that any of them waits for.

As trio's MockClock with `autojump_threshold=0`, but cheaper: that one needs an idle round of trio's loop for each jump,
each round is a system call that looks for I/O, and whoever asks for the time makes another one.
"""

from __future__ import annotations

import math
from typing import Any

import trio
from trio._core._run import GLOBAL_RUN_CONTEXT

FOREVER_S = 999_999_999.0
ROUNDS = 100
"""Of trio's loop, of which one looks for I/O."""


class JumpingClock(trio.abc.Clock):
    """Starts at 0. Tasks that wait for anything but each other and the time (threads, sockets) don't hold it up."""

    def __init__(self) -> None:
        self._now = 0.0

    def start_clock(self) -> None:
        runner: Any = GLOBAL_RUN_CONTEXT.runner
        runner.io_manager = _Rarely(runner.io_manager)

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Called by trio when no task can run: it's `deadline` at once."""
        if deadline == math.inf:
            return FOREVER_S
        self._now += max(0.0, deadline - self._now)
        return 0.0


class _Rarely:
    """Trio's I/O, looked at in few rounds: a simulated swarm has no sockets, and Ctrl-C may come milliseconds later."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self._round = 0
        self.process_events = real.process_events

    def get_events(self, timeout: float) -> Any:
        self._round += 1
        if timeout == 0 and self._round % ROUNDS:
            return ()
        return self._real.get_events(timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
