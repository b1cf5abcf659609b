"""Runs a scenario, start to judgement: the one door for the command and the tests."""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import trio

from swarmtui.peer import intake, store
from swarmtui.peer.memory import reproducible

from .clock import JumpingClock
from .judgement import Oracle, Outcome, judge, with_errors
from .scenario import Scenario
from .trace import Teller, Trace
from .world import World


class _Errors(logging.Handler):
    """Collects what the code logs as an error: an exception that nobody foresaw."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"
        self.lines.append(text)


@contextlib.contextmanager
def _listening() -> Iterator[_Errors]:
    log = logging.getLogger("swarmtui")
    handler, passes_on = _Errors(), log.propagate
    log.addHandler(handler)
    log.propagate = False
    try:
        yield handler
    finally:
        log.removeHandler(handler)
        log.propagate = passes_on


@contextlib.contextmanager
def _reading_once() -> Iterator[None]:
    """Take each frame apart, and check each presence, once in the process, not once for every member (as it's with ops:
    frames.SHARED)."""
    intakes: Any = intake
    stores: Any = store
    old = intakes.open_presence, intakes.take_apart, stores.peek
    intakes.open_presence = lru_cache(maxsize=4_096)(intakes.open_presence)
    intakes.take_apart = lru_cache(maxsize=256)(intakes.take_apart)
    stores.peek = lru_cache(maxsize=4_096)(stores.peek)
    try:
        yield
    finally:
        intakes.open_presence, intakes.take_apart, stores.peek = old


@contextlib.contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Look for garbage more rarely: what a thousand peers know is a million objects, and none of them is garbage."""
    usual = gc.get_threshold()
    gc.set_threshold(10_000, 10, 10)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextlib.contextmanager
def _whole_interruption() -> Iterator[None]:
    """Ctrl-C comes to some task, and out of trio wrapped in a group for each nursery on its way."""
    try:
        yield
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        raise KeyboardInterrupt from None


def run(scenario: Scenario, teller: Teller | None = None, oracle: Oracle | None = None) -> Outcome:
    """Run a scenario and judge it.

    Args:
        scenario: what happens.
        teller: told of every event.
        oracle: another way from ops to pictures, to compare with.

    Returns:
        What came of it. The same scenario gives the same outcome, its trace's hash included, in any process.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    outcomes: list[Outcome] = []
    trace = Trace(teller)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            world = World(scenario, nursery, trace)
            await world.run()
            outcomes.append(judge(world, oracle))
            nursery.cancel_scope.cancel()

    with (
        _listening() as errors,
        _reading_once(),
        _collecting_seldom(),
        reproducible(scenario.seed),
        _whole_interruption(),
    ):
        trio.run(main, clock=JumpingClock())
    return with_errors(outcomes[0], errors.lines)
