"""A swarm that runs while a command does, and what is shown of it on stderr."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from logging.handlers import RotatingFileHandler
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from swarmtui.cli.failure import Failure, Terminated
from swarmtui.plaintext import one_line

if TYPE_CHECKING:
    from swarmtui.config import Config
    from swarmtui.swarm import Swarm
    from swarmtui.view import SwarmView

STOP_SECONDS = 15.0
LOG_BYTES = 2_000_000


def log_to_file(config: Config) -> None:
    """Send the log to the data folder; where that can't be written there is none (the swarm says so itself)."""
    from swarmtui.paths import Folders

    file = Folders(config.data_dir).log
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = RotatingFileHandler(file, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # libp2p cuts its loggers off from the root, and what has no handler would be printed over the screen.
    logging.lastResort = handler
    logging.raiseExceptions = False  # a full disk would be told on the screen, line by line
    root.setLevel(logging.WARNING)
    logging.getLogger("swarmtui").setLevel(logging.INFO)


@contextlib.contextmanager
def ends_raise() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into :class:`Terminated` in the main thread, so that what is open is closed.

    Not SIGHUP where it's ignored, as under nohup.
    """

    def terminate(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            _leave_terminal()
        raise Terminated(number)

    ends = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ends.append(signal.SIGHUP)
    with _handled(ends, terminate):
        yield


def _leave_terminal() -> None:
    """The terminal is gone: a line that is written to it would be an error in the midst of the goodbye."""
    for number in (1, 2):
        if stat.S_ISCHR(os.fstat(number).st_mode):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """Ignore Ctrl-C, SIGTERM and SIGHUP for the moments in which things are written and closed."""
    with _handled((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handled(
    numbers: Iterable[int], handler: Callable[[int, FrameType | None], object] | signal.Handlers
) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextlib.contextmanager
def started(swarm: Swarm) -> Iterator[Swarm]:
    """Run a swarm for the body of a `with`; its threads, child and sockets have ended afterwards.

    Raises:
        Failure: it can't start: no model, no network.
    """
    from swarmtui.swarm import SwarmError

    try:
        try:
            swarm.start()
        except SwarmError as error:
            raise Failure(error, error.remedy) from error
        yield swarm
    finally:
        with signals_wait():
            if not swarm.stop(STOP_SECONDS):
                print("swarmtui: the swarm didn't stop in time", file=sys.stderr)  # noqa: T201


def result(future: Future[str], seconds: float = 30.0) -> str:
    """Wait for a command of the swarm.

    Raises:
        Failure: it couldn't be carried out.
    """
    from swarmtui.swarm import SwarmError

    try:
        return future.result(seconds)
    except SwarmError as error:
        raise Failure(error, error.remedy) from error
    except TimeoutError:
        raise Failure(f"the swarm didn't answer within {seconds:.0f} s") from None


def headline(view: SwarmView) -> str:
    """How far the shown plan is, in a line."""
    from swarmtui.view import standing

    return " · ".join(words for _, words in standing(view))


class Progress:
    """Shows a swarm's pictures: a few lines redrawn on a terminal, elsewhere a line for each thing that was said."""

    def __init__(self, stream: TextIO, quiet: bool = False) -> None:
        from rich.console import Console
        from rich.live import Live

        self._stream = stream
        self._quiet = quiet
        self._begin = time.monotonic()
        self._told: tuple[float, str] | None = None
        self._notices: set[str] = set()
        self._live: Live | None = None
        if stream.isatty() and not quiet:
            console = Console(file=stream, markup=False, highlight=False)
            self._live = Live(console=console, transient=True, refresh_per_second=4)

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str, always: bool = False) -> None:
        """Show a line that stays; `always`: though it should be quiet."""
        line = f"[{time.monotonic() - self._begin:5.0f} s] {one_line(text)}"
        if self._live is not None:
            self._live.console.print(line, soft_wrap=True)
        elif always or not self._quiet:
            self._stream.write(line + "\n")
            self._stream.flush()

    def show(self, view: SwarmView) -> None:
        """Show what is new in a picture."""
        for notice in view.notices:
            if notice.text not in self._notices:
                self._notices.add(notice.text)
                self.say(f"{notice.severity}: {notice.text}", always=True)
        if self._live is None:
            self._tell(view)
        else:
            self._draw(view)

    def _tell(self, view: SwarmView) -> None:
        lines = [(line.at, line.text) for line in view.gossip]
        new = lines[lines.index(self._told) + 1 :] if self._told in lines else lines
        for _, text in new:
            self.say(text)
        if new:
            self._told = new[-1]
            self.say(headline(view))

    def _draw(self, view: SwarmView) -> None:
        from rich.text import Text

        assert self._live is not None
        rows = [f"[{time.monotonic() - self._begin:5.0f} s] {headline(view)}"]
        for agent in view.agents:
            if agent.role in ("decomposer", "scorer", "executor") and agent.state != "gone":
                rows.append(f"  {agent.role[0].upper()} {agent.name:8} {agent.doing:10} {agent.subject}")
        rows += [f"  {line.text}" for line in view.gossip[-1:]]
        text = "\n".join(one_line(row) if i == 0 else f"  {one_line(row)}" for i, row in enumerate(rows))
        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"))
