"""How a command ends when it can't do what it was asked."""

from __future__ import annotations

EXIT_STALLED = 3
EXIT_INTERRUPTED = 130


class Failure(Exception):
    """A command failed: `str()` is one line for the person that says why and what to do."""

    def __init__(self, reason: object, remedy: str = "") -> None:
        text = " ".join(str(reason).split()).rstrip(".")
        super().__init__(f"{text}: {remedy}" if remedy else text)


class Terminated(BaseException):
    """SIGTERM or SIGHUP has come. Like KeyboardInterrupt, it isn't an error."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number
