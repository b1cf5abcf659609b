"""`swarmtui judge`: how good a judge a model is, on splits that are known to be good or flawed."""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from swarmtui.cli import options
from swarmtui.cli.failure import Failure
from swarmtui.cli.progress import Line, lasting
from swarmtui.plaintext import one_line
from swarmtui.plan.narrative import plural

if TYPE_CHECKING:
    from swarmtui.agents.trial import Bad, Marked, Method, Numbered, Row
    from swarmtui.config import Config

SHOWN_BAD = 20
"""Bad lines that are named one by one."""
HEADS = ("ranked", "pass", "specific", "distinct", "complete", "mean")
AT_ONCE = 4
"""Splits that are being marked at the same time: as many as an engine has slots."""
EVERY_S = 10.0
"""How often progress is told where it can't be redrawn."""

EXAMPLES = """\b
Examples:
  swarmtui judge splits.jsonl
  swarmtui judge splits.jsonl --model path/to/model.gguf --written
  swarmtui judge splits.jsonl --json > marks.json

\b
A line of the file: {"goal": "Bake bread", "flaw": null, "steps": ["Knead the dough", "Heat the oven"]}
flaw is null for a good split, else the name of what's wrong. Pairs are made within a goal.

\b
Exit codes: 0 every line was marked; 1 lines were bad or couldn't be marked (named on stderr), or nothing could be
marked; 2 usage; 130 interrupted by Ctrl-C, 143 by SIGTERM: the table shows what there is by then.
"""


@dataclass(slots=True)
class Outcome:
    """What came of a trial."""

    model: str = ""
    methods: list[Method] = field(default_factory=list)
    marked: list[Marked] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    note: str = ""
    seconds: float = 0.0
    stopped: int = 0
    """Number of the signal that ended it early."""
    failure: Failure | None = None
    """Why there was no model."""


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--written", is_flag=True, help="Also ask the model to write marks, for comparison (slow).")
@click.option("--goals", type=click.IntRange(1), metavar="N", help="Only the splits of the first N goals.")
@click.option("--each", is_flag=True, help="Show each split's marks and critique, too.")
@click.option("--json", "as_json", is_flag=True, help="Everything as one JSON object.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@options.common
def judge(file: Path, written: bool, goals: int | None, each: bool, as_json: bool, quiet: bool) -> int:
    """Mark the splits in FILE ("-": stdin) and show how often the good one of a goal outranks its flawed ones."""
    from swarmtui.cli.running import log_to_file

    settings = options.config()
    found, bad = _read(file)
    if not found:
        _name(bad)
        raise Failure(
            f"no split in {file} can be marked", 'a line is {"goal": …, "flaw": null or a name, "steps": […]}'
        )
    if goals is not None:
        wanted = list(dict.fromkeys(item.split.goal for item in found))[:goals]
        found = [item for item in found if item.split.goal in wanted]
    log_to_file(settings)
    outcome = _run(settings, found, bad, written, Ticker(sys.stderr, len(found), quiet))
    if outcome.failure is not None:
        raise outcome.failure
    _name(outcome.bad)
    if outcome.note:
        click.echo(f"swarmtui: {outcome.note}", err=True)
    pass_mark = settings.policy.pass_mark
    if as_json:
        click.echo(json.dumps(_told(outcome, pass_mark), ensure_ascii=False))
    elif outcome.marked:
        if each:
            _show_each(outcome)
        _show(outcome, pass_mark)
    if outcome.stopped:
        return 128 + outcome.stopped
    return 1 if outcome.bad else 0


def _read(file: Path) -> tuple[list[Numbered], list[Bad]]:
    from swarmtui.agents.trial import Bad, Numbered, read
    from swarmtui.files import reason_of

    try:
        with click.open_file(str(file), "rb") as stream:
            items = list(read(stream))
    except OSError as error:
        raise Failure(f"{file} can't be read: {reason_of(error)}") from error
    return (
        [item for item in items if isinstance(item, Numbered)],
        [item for item in items if isinstance(item, Bad)],
    )


def _name(bad: Sequence[Bad]) -> None:
    for each in bad[:SHOWN_BAD]:
        click.echo(f"line {each.line}: {each.why}", err=True)
    if len(bad) > SHOWN_BAD:
        click.echo(f"and {len(bad) - SHOWN_BAD} more lines", err=True)


class Ticker:
    """Progress on stderr: a line that's redrawn on a terminal, elsewhere a line now and then."""

    def __init__(self, stream: TextIO, total: int, quiet: bool) -> None:
        self._line = Line(stream)
        self._total = total
        self._quiet = quiet
        self._began = self._told = time.monotonic()

    def say(self, text: str) -> None:
        """Tell what is going on before the first split."""
        if not self._quiet:
            self._line.show(text)

    def done(self, count: int) -> None:
        """So many splits are marked."""
        now = time.monotonic()
        if self._quiet or not (self._line.redraws or now - self._told >= EVERY_S or count == self._total):
            return
        self._told = now
        left = (now - self._began) / count * (self._total - count)
        ending = f", about {lasting(left)} to go" if left >= 1 else ""
        self._line.show(f"{count} of {plural(self._total, 'split')} marked{ending}")

    def clear(self) -> None:
        """Make room for other lines."""
        self._line.clear()


def _run(settings: Config, found: Sequence[Numbered], bad: list[Bad], written: bool, ticker: Ticker) -> Outcome:
    import trio

    outcome = Outcome(bad=list(bad))
    began = time.monotonic()
    try:
        trio.run(_trial, settings, found, written, outcome, ticker)
    finally:
        ticker.clear()
    outcome.seconds = time.monotonic() - began
    outcome.marked.sort(key=lambda each: each.line)
    outcome.bad.sort(key=lambda each: each.line)
    return outcome


async def _trial(settings: Config, found: Sequence[Numbered], written: bool, outcome: Outcome, ticker: Ticker) -> None:
    """Start the model and mark all splits, until done or a signal comes."""
    import trio

    from swarmtui.agents import AgentSettings, PromptError, Prompts, trial
    from swarmtui.agents.judge import Judge
    from swarmtui.llm.model import ModelError
    from swarmtui.paths import prompts_dir
    from swarmtui.swarm.errors import SwarmError
    from swarmtui.swarm.metering import Meter
    from swarmtui.swarm.models import Models

    async def watch(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for outcome.stopped in signals:
                nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        await nursery.start(watch)
        ticker.say("loading the model")
        try:
            own = prompts_dir()
            prompts = Prompts.load(own if own.is_dir() else None)
            model = await Models(settings, Meter(), nursery).take(settings.model)
        except (PromptError, SwarmError) as error:
            outcome.failure = Failure(error, getattr(error, "remedy", ""))
            nursery.cancel_scope.cancel()
            return
        outcome.model = model.name
        one = Judge(trial.Remembered(model), AgentSettings(name="judge", prompts=prompts), None)
        readable = await trial.can_be_read(one)
        if readable:
            outcome.methods = [trial.LIKELIHOOD, trial.WRITTEN, trial.CHECKED] if written else [trial.LIKELIHOOD]
        else:
            outcome.methods = [trial.WRITTEN, trial.CHECKED]
            outcome.note = f"{model.name} tells no likelihoods: it's asked to write marks"
        waiting = deque(found)

        async def work() -> None:
            while waiting:
                split = waiting.popleft()
                try:
                    outcome.marked.append(
                        await trial.mark(one, split, outcome.methods, pass_mark=settings.policy.pass_mark)
                    )
                except ModelError as error:
                    outcome.bad.append(trial.Bad(split.line, str(error)))
                ticker.done(len(outcome.marked) + len(outcome.bad))

        async with trio.open_nursery() as workers:
            for _ in range(AT_ONCE):
                workers.start_soon(work)
        nursery.cancel_scope.cancel()


def _tables(outcome: Outcome, pass_mark: int) -> dict[Method, list[Row]]:
    from swarmtui.agents.trial import tabulate

    return {method: tabulate(outcome.marked, method, pass_mark) for method in outcome.methods}


def _show(outcome: Outcome, pass_mark: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    tables = _tables(outcome, pass_mark)
    table = Table(box=box.MARKDOWN)
    table.add_column("flaw", overflow="fold")
    table.add_column("splits", justify="right")
    heads = ["ranked", "pass", "mean"] if len(tables) > 1 else HEADS
    for method in tables:
        for head in heads:
            table.add_column(f"{method}: {head}" if len(tables) > 1 else head, justify="right")
    for rows in zip(*tables.values(), strict=True):
        cells = [_cells(row) for row in rows]
        table.add_row(
            Text(one_line(rows[0].flaw)), str(rows[0].splits), *(each[head] for each in cells for head in heads)
        )
    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 200)
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().split("\n") if line.strip()))
    click.echo(
        f"{outcome.model}; {plural(len(outcome.marked), 'split')} in {outcome.seconds:.0f} s; "
        f"pass: a mean mark of at least {pass_mark}; ranked: the good split of the goal got the higher mean mark"
    )


def _cells(row: Row) -> dict[str, str]:
    share = 100 * row.passing / row.splits
    ties = f" ({row.tied} tied)" if row.tied else ""
    return {
        "ranked": f"{row.ranked}/{row.pairs}{ties}" if row.pairs else "–",
        "pass": f"{math.floor(share + 0.5)} %",
        **{name: f"{getattr(row, name):.0f}" for name in ("specific", "distinct", "complete", "mean")},
    }


def _show_each(outcome: Outcome) -> None:
    for found in outcome.marked:
        click.echo(f"line {found.line}: {found.split.goal} [{found.split.flaw or 'good'}]")
        for method, verdict in found.verdicts.items():
            marks = verdict.marks
            click.echo(
                f"  {method}: {marks.mean:.0f} (specific {marks.specific}, distinct {marks.distinct}, "
                f"complete {marks.complete}) {one_line(verdict.critique)}".rstrip()
            )


def _told(outcome: Outcome, pass_mark: int) -> dict[str, Any]:
    """Everything, as plain data."""
    return {
        "model": outcome.model,
        "pass_mark": pass_mark,
        "seconds": round(outcome.seconds, 1),
        "complete": not outcome.stopped,
        "note": outcome.note,
        "bad_lines": [asdict(each) for each in outcome.bad],
        "tables": {method: [asdict(row) for row in rows] for method, rows in _tables(outcome, pass_mark).items()},
        "splits": [
            {
                "line": found.line,
                "goal": found.split.goal,
                "flaw": found.split.flaw,
                "steps": found.split.steps,
                "verdicts": {
                    method: {
                        "specific": verdict.marks.specific,
                        "distinct": verdict.marks.distinct,
                        "complete": verdict.marks.complete,
                        "mean": round(verdict.marks.mean, 1),
                        "critique": verdict.critique,
                    }
                    for method, verdict in found.verdicts.items()
                },
            }
            for found in outcome.marked
        ],
    }
