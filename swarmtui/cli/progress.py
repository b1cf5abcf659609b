"""How far a long row of like things is, and how long the rest will take."""

from __future__ import annotations

import time
from typing import TextIO

LINE_S = 30.0
"""Where lines can't be redrawn, one comes so often at most."""


class Progress:
    """One line on stderr: redrawn on a terminal, else a new one now and then.

    Args:
        total: how many there are to do.
        what: what they are.
        stream: where to show it.
    """

    def __init__(self, total: int, what: str, stream: TextIO) -> None:
        self._total, self._what, self._stream = total, what, stream
        self._began = self._shown = time.monotonic()
        self._done = 0

    def step(self, more: str = "") -> None:
        """One more is done.

        Args:
            more: shown behind the numbers.
        """
        self._done += 1
        now = time.monotonic()
        if not self._stream.isatty() and (now - self._shown < LINE_S or self._done == self._total):
            return
        self._shown = now
        each = (now - self._began) / self._done
        left = lasting(each * (self._total - self._done))
        parts = [f"{self._done:,} of {self._total:,} {self._what}", more, f"{each:.2f} s each", f"about {left} to go"]
        text = " · ".join(part for part in parts if part)
        self._stream.write(f"\r{text}\x1b[K" if self._stream.isatty() else f"{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Make room for other lines."""
        if self._stream.isatty():
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def lasting(seconds: float) -> str:
    """A time to come, as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
