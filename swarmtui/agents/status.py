"""What an agent does now, for the screen."""

from __future__ import annotations

from dataclasses import dataclass, field

TAIL_CHARACTERS = 400
LEAST_TIMED_S = 0.5
"""Pieces of text that come within this time are reckoned as if they had taken as long."""
SILENT_S = 5.0
"""After so long without a word nothing is being written."""


@dataclass(slots=True)
class Status:
    """Kept by the agent, read by whoever draws. Monotonic times are trio's."""

    doing: str = "idle"
    """drafting, judging, working, merging, claiming, waiting, idle or paused."""
    subject: str = ""
    """The task's title, or why it's idle."""
    since: float = 0.0
    """Unix seconds, by the peer's clock."""
    tail: str = ""
    """The last characters that its model wrote, while it writes."""
    trouble: str = ""
    """What went wrong last, and what can be done about it; '' after a success, or when nothing is left to try again."""
    _began: float = field(default=0.0, init=False)
    _wrote: float = field(default=0.0, init=False)
    _pieces: int = field(default=0, init=False)

    def blank(self) -> None:
        """Nothing of an answer is written yet, or any more."""
        self.tail, self._pieces = "", 0

    def wrote(self, text: str, now: float) -> None:
        """Its model wrote this piece."""
        if not self._pieces:
            self._began = now
        self._pieces += 1
        self._wrote = now
        self.tail = (self.tail + text)[-TAIL_CHARACTERS:]

    def tokens_per_second(self, now: float) -> float:
        """How fast its model writes; 0 if it doesn't."""
        if self._pieces < 2 or self._wrote == self._began or now - self._wrote >= SILENT_S:
            return 0.0  # A server's pieces may come in a burst: that's no speed.
        return (self._pieces - 1) / max(self._wrote - self._began, LEAST_TIMED_S)
