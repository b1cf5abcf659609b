"""Tells a hung engine from a slow one, and both from a machine that slept."""

from __future__ import annotations

TICK_S = 1.0
LONGEST_TICK_S = 2.0
"""More than this between two looks means that this process itself didn't run (stopped, asleep, starved): no silence of
the engine's."""
PATIENCE_S = 30.0
MARGIN = 3.0
"""So many times as long as it said it would take may a sign take, beyond the patience."""


class Vigil:
    """Counts for how long an engine has owed a sign of life. Fed by regular ticks."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience = patience_s
        self.silence = 0.0
        """Seconds without a sign, as far as we were awake."""
        self._allowed = patience_s

    def heard(self, promised_s: float = 0.0) -> None:
        """A sign came, with the promise of another within so many seconds."""
        self.silence = 0.0
        self._allowed = self._patience + MARGIN * max(0.0, promised_s)

    def tick(self, seconds: float, owed: bool) -> bool:
        """So much time has passed by our clock; True if it hangs.

        Args:
            seconds: since the last tick, monotonic.
            owed: whether the engine has something to do.
        """
        if not owed:
            self.heard()
            return False
        self.silence += min(seconds, LONGEST_TICK_S)
        return self.silence > self._allowed
