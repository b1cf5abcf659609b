"""What came of each run, a line of JSON as soon as it's known: a long row of runs that was cut off can go on."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from .judgement import Outcome
from .scenario import Data


class Ask(Data, frozen=True, forbid_unknown_fields=True):
    """What scenarios are drawn by, beside the seed."""

    peers: tuple[int, int] = (5, 12)
    faults: tuple[str, ...] | None = None
    thin: bool = False


class LedgerError(Exception):
    """The file can't be used: `str()` says why."""


class Ledger:
    """A file of outcomes, to be used as a context.

    Args:
        path: made if it isn't there. What is in it must have been asked for alike.
        ask: what is asked for now.

    Attributes:
        outcomes: what came of the seeds that are in it already.

    Raises:
        LedgerError: the file is something else, or was asked for otherwise.
        OSError: it can't be read or written.
    """

    def __init__(self, path: Path, ask: Ask) -> None:
        self.outcomes: dict[int, Outcome] = {}
        there = path.read_bytes() if path.exists() else b""
        first, *lines = there.split(b"\n")[:-1] or [b""]
        if there:
            self._read(path, ask, first, lines)
        self._file: BinaryIO = path.open("r+b" if there else "wb")
        self._file.truncate(there.rfind(b"\n") + 1)  # a line that was cut off in the middle
        self._file.seek(0, os.SEEK_END)
        if not there:
            self._write(ask)

    def _read(self, path: Path, ask: Ask, first: bytes, lines: list[bytes]) -> None:
        try:
            asked = msgspec.json.decode(first, type=Ask)
            self.outcomes = {each.seed: each for each in (msgspec.json.decode(line, type=Outcome) for line in lines)}
        except msgspec.MsgspecError as error:
            raise LedgerError(f"{path} holds something else") from error
        if asked != ask:
            raise LedgerError(f"{path} holds runs with other --peers, --faults or --thin")

    def add(self, outcome: Outcome) -> None:
        """Write what came of a run."""
        self.outcomes[outcome.seed] = outcome
        self._write(outcome)

    def _write(self, line: Data) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
