"""`swarmtui models get`: a model from the Hugging Face hub."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

import click

from swarmtui.cli import options
from swarmtui.cli.failure import EXIT_INTERRUPTED, EXIT_TERMINATED, Failure, Terminated

if TYPE_CHECKING:
    from swarmtui.config import Config
    from swarmtui.llm.hub import Offer, Repository

LINE_S = 15.0
"""Where a line can't be redrawn, one comes so often at most."""
REDRAW_S = 0.1

EXAMPLES = """\b
Examples:
  swarmtui models get Qwen/Qwen3-4B-GGUF
  swarmtui models get Qwen/Qwen3-4B-GGUF:Q8_0
  swarmtui models get Qwen/Qwen3-4B-GGUF --list

\b
Without a quantisation the one is taken that suits this machine: about 4 bits a weight (8 for models under 1 GB) if
that fits in memory. Interrupted, the same command goes on from there. A token for private models is taken from
HF_TOKEN or `hf auth login`. The files come into the folder of your own models (swarmtui paths).
"""


@click.command(epilog=EXAMPLES)
@click.argument("repo", metavar="REPO[:QUANT]")
@click.option("--list", "only_list", is_flag=True, help="Show what the repository has, and get nothing.")
@options.common
def get(repo: str, only_list: bool) -> int:
    """Get a model from the Hugging Face hub: REPO is a repository with GGUF files, as owner/name."""
    from swarmtui.cli.running import sigterm_raises
    from swarmtui.llm import hub, hub_fetch
    from swarmtui.llm.model import ModelError

    settings = options.config()
    meter = Meter(sys.stderr)
    try:
        with sigterm_raises():
            name, label = hub.parse(repo)
            repository = hub.look(name)
            offer = None
            try:
                offer = hub.choose(repository, label, settings.llm)
            finally:
                if only_list or not label or offer is None:
                    _print(settings, repository, offer)
            if only_list:
                return 0
            found = hub_fetch.fetch(repository, offer, settings.models_dir, meter)
            meter.clear()
    except ModelError as error:
        meter.clear()
        raise Failure(error, error.remedy) from error
    except (KeyboardInterrupt, Terminated) as error:
        meter.clear()
        click.echo("swarmtui: interrupted; what came is kept, the same command goes on from there", err=True)
        return EXIT_TERMINATED if isinstance(error, Terminated) else EXIT_INTERRUPTED
    click.echo(f"{found.path}")
    click.echo(f"use it: swarmtui --model {found.name}", err=True)
    return 0


def _print(settings: Config, repository: Repository, chosen: Offer | None) -> None:
    """List what there is; the one that's taken is marked."""
    from swarmtui.cli.models import in_words, table
    from swarmtui.llm.memory import gigabytes, memory
    from swarmtui.plaintext import one_line

    here = memory()
    rows = [["", "QUANT", "SIZE", "MEMORY, ABOUT"]]
    for offer in repository.offers:
        mark = "*" if offer is chosen else ""
        rows.append([mark, one_line(offer.label), gigabytes(offer.size), in_words(offer.fit(settings.llm, here))])
    for line in table(rows, [""] * len(rows)):
        click.echo(line, err=True)


class Meter:
    """How far a download is, in one line that's redrawn on a terminal; elsewhere a line now and then."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = 0.0
        self._what = ""
        self._began = (0.0, 0)
        self._drawn = False

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._shown = what, (now, done), 0.0
        if now - self._shown < (REDRAW_S if self._stream.isatty() else LINE_S):
            return
        self._shown = now
        text = in_line(what, done, total, (done - self._began[1]) / max(now - self._began[0], 1e-3))
        self._stream.write(f"\r{text}\x1b[K" if self._stream.isatty() else f"{text}\n")
        self._stream.flush()
        self._drawn = True

    def clear(self) -> None:
        """Make room for other lines."""
        if self._drawn and self._stream.isatty():
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def in_line(what: str, done: int, total: int, speed: float) -> str:
    """The line: what's done, how much of it, how fast (bytes a second), how long it'll last."""
    from swarmtui.cli.progress import lasting
    from swarmtui.llm.memory import gigabytes

    parts = [f"{what} {gigabytes(done)} of {gigabytes(total)}", f"{100 * done // max(1, total)} %"]
    if speed > 1:
        parts += [f"{speed / 1e6:.1f} MB/s", f"{lasting((total - done) / speed)} to go"]
    return " · ".join(parts)
