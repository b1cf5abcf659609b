"""Signs of life: what the engine says while it works, so that the client can tell slow from hung.

They come from progress alone: between two steps, and within a long one from llama.cpp's own walk through the model's
layers. An engine that is stuck gives none, however alive its threads are.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from swarmtui.llm import wire

EACH_S = 1.0
"""So often a sign is given, if there's progress."""
UNKNOWN_S = 60.0
"""What a step is said to take at most before any was measured (a GPU compiles its programs in the first)."""


class Pulse:
    """Gives the signs. Used by one thread."""

    def __init__(self, tell: Callable[[wire.FromEngine], None], now: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._now = now
        self._last = now()
        self._steps: deque[float] = deque(maxlen=8)
        self._began = 0.0

    def told(self) -> None:
        """Something else was said: that's a sign as well."""
        self._last = self._now()

    def begin(self) -> bool:
        """A step begins. True if signs should be given from within, since it may be long."""
        self._began = self._now()
        expected = max(self._steps, default=UNKNOWN_S)
        if expected > EACH_S or self._began - self._last >= EACH_S:
            self._say(expected)
        return expected > EACH_S

    def within(self) -> None:
        """There is progress within a step, or in loading."""
        if self._now() - self._last >= EACH_S:
            self._say(EACH_S)

    def end(self) -> None:
        """The step is over."""
        self._steps.append(self._now() - self._began)

    def waits(self) -> None:
        """Something of unknown length begins."""
        self._say(UNKNOWN_S)

    def _say(self, seconds: float) -> None:
        self._tell(wire.Beat(seconds))
        self.told()
