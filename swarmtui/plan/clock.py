"""The hybrid logical clock: wall time where clocks agree, causality where they don't.

A reading is one integer, unix milliseconds << 16 | counter. It grows with every tick and past every reading that was
merged, so what a peer says is always later than what it has heard.
"""

from __future__ import annotations

from collections.abc import Callable

from .ops import Hlc

MAX_AHEAD_MS = 5_000
"""A reading further ahead of the local wall clock is never merged: one wrong clock mustn't pull the others along."""
COUNTER_BITS = 16


def from_ms(unix_ms: int) -> Hlc:
    """The first reading of a millisecond."""
    return unix_ms << COUNTER_BITS


def to_seconds(hlc: Hlc) -> float:
    """Unix seconds of a reading."""
    return (hlc >> COUNTER_BITS) / 1000


class HybridClock:
    """One peer's clock.

    Args:
        now_ms: the local wall clock, in unix milliseconds. It may jump; the readings don't go back.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._last: Hlc = 0

    @property
    def last(self) -> Hlc:
        """The greatest reading given or merged so far."""
        return self._last

    def tick(self) -> Hlc:
        """A reading greater than all before it."""
        self._last = max(from_ms(self._now_ms()), self._last + 1)
        return self._last

    def merge(self, hlc: Hlc) -> None:
        """Learn a reading from another peer. One too far ahead is ignored."""
        if hlc > self._last and self.ahead_ms(hlc) <= MAX_AHEAD_MS:
            self._last = hlc

    def ahead_ms(self, hlc: Hlc) -> int:
        """How far a reading is ahead of the local wall clock, in milliseconds (negative: behind)."""
        return (hlc >> COUNTER_BITS) - self._now_ms()
