"""Exceptions that were caught and logged where none was foreseen: to the fuzzer they're finds like any other."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


class _Finds(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.finds: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.finds.append(record)


@contextlib.contextmanager
def nothing_unforeseen() -> Iterator[None]:
    """Raise what swarmtui logged with a traceback meanwhile. Nothing reaches the terminal."""
    logger, handler = logging.getLogger("swarmtui"), _Finds()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before
    for record in handler.finds:
        assert record.exc_info
        raise AssertionError(f"unforeseen: {record.getMessage()}") from record.exc_info[1]
