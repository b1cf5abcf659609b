"""How far something long is, and how long the rest of it will take."""

from __future__ import annotations

import time
from typing import TextIO

LINE_S = 30.0
"""Where lines can't be redrawn, one comes so often at most."""
REDRAW_S = 0.1


class Line:
    """A line that's redrawn on a terminal; elsewhere each is a new one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.redraws = stream.isatty()
        self._drawn = False

    def show(self, text: str) -> None:
        """Show it in the place of the one before."""
        self._stream.write(f"\r{text}\x1b[K" if self.redraws else f"{text}\n")
        self._stream.flush()
        self._drawn = self.redraws

    def clear(self) -> None:
        """Make room for other lines."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False


class Progress:
    """How far a long row of like things is.

    Args:
        total: how many there are to do.
        what: what they are.
        stream: where to show it.
    """

    def __init__(self, total: int, what: str, stream: TextIO) -> None:
        self._total, self._what, self._line = total, what, Line(stream)
        self._began = self._shown = time.monotonic()
        self._done = 0

    def step(self, more: str = "") -> None:
        """One more is done.

        Args:
            more: shown behind the numbers.
        """
        self._done += 1
        now = time.monotonic()
        if not self._line.redraws and (now - self._shown < LINE_S or self._done == self._total):
            return
        self._shown = now
        each = (now - self._began) / self._done
        left = lasting(each * (self._total - self._done))
        parts = [f"{self._done:,} of {self._total:,} {self._what}", more, f"{each:.2f} s each", f"about {left} to go"]
        self._line.show(" · ".join(part for part in parts if part))

    def clear(self) -> None:
        """Make room for other lines."""
        self._line.clear()


class Download:
    """How far a download is: called with what is done, bytes done and bytes in all, often.

    Args:
        stream: where to show it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._line = Line(stream)
        self._shown = float("-inf")
        self._what = ""
        self._began = (0.0, 0)

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._shown = what, (now, done), float("-inf")
        if now - self._shown < (REDRAW_S if self._line.redraws else LINE_S):
            return
        self._shown = now
        self._line.show(in_line(what, done, total, (done - self._began[1]) / max(now - self._began[0], 1e-3)))

    def clear(self) -> None:
        """Make room for other lines."""
        self._line.clear()


def in_line(what: str, done: int, total: int, speed: float) -> str:
    """How far a download is: what's done, how much of it, how fast (bytes a second), how long it'll last."""
    from swarmtui.llm.memory import gigabytes

    parts = [f"{what} {gigabytes(done)} of {gigabytes(total)}", f"{100 * done // max(1, total)} %"]
    if speed > 1:
        parts += [f"{speed / 1e6:.1f} MB/s", f"{lasting((total - done) / speed)} to go"]
    return " · ".join(parts)


def lasting(seconds: float) -> str:
    """A time to come, as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
