"""What a command to the swarm can fail with."""

from __future__ import annotations


class SwarmError(Exception):
    """A command couldn't be carried out. `str()` says why; `remedy` what to do about it ('' if nothing)."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy
