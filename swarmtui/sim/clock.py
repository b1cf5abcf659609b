"""Virtual time: it passes only while every task waits, and then it jumps to the next moment that any of them waits for.

As trio's MockClock with `autojump_threshold=0`, at half the price: that one needs an idle round of trio's loop, with a
system call, for each jump, and asks the real clock, too, whenever somebody asks for the time.
"""

from __future__ import annotations

import math

import trio

FOREVER_S = 999_999_999.0


class JumpingClock(trio.abc.Clock):
    """Starts at 0. Tasks that wait for anything but each other and the time (threads, sockets) don't hold it up."""

    def __init__(self) -> None:
        self._now = 0.0

    def start_clock(self) -> None:
        """Nothing runs until somebody waits."""

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Called by trio when no task can run: it's `deadline` at once."""
        if deadline == math.inf:
            return FOREVER_S
        self._now += max(0.0, deadline - self._now)
        return 0.0
