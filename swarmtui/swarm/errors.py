"""What went wrong in the swarm, and what a command to it can fail with."""

from __future__ import annotations


def first(error: BaseException) -> BaseException:
    """The first thing that went wrong: what a nursery raises holds it in groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class SwarmError(Exception):
    """A command couldn't be carried out. `str()` says why; `remedy` what to do about it ('' if nothing).

    `another_model` says that with another model it might be.
    """

    def __init__(self, reason: str, remedy: str = "", *, another_model: bool = False) -> None:
        super().__init__(reason)
        self.remedy = remedy
        self.another_model = another_model
