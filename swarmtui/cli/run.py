"""`swarmtui run`: a plan made without a screen."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from swarmtui.cli import options
from swarmtui.cli.failure import EXIT_INTERRUPTED, EXIT_STALLED, Failure, Terminated
from swarmtui.cli.writing import as_text, export_options

if TYPE_CHECKING:
    from swarmtui.cli.running import Progress
    from swarmtui.swarm import Swarm
    from swarmtui.view import PlanView, SwarmView

LOOK_SECONDS = 0.1

EXAMPLES = """\b
Examples:
  swarmtui run "Plan a two-week trip to Japan" --preset tiny --export plan.md
  swarmtui run "Plan a party" --model scripted --seed 7 > plan.md
  echo "Plan a garden" | swarmtui run - --format json

\b
Exit codes: 0 the plan is done; 3 it's stalled (each reason on stderr); 130 interrupted by Ctrl-C, 143 by SIGTERM,
129 by the end of its terminal. In each case what there is of the plan is exported.
"""


@click.command(epilog=EXAMPLES)
@click.argument("goal")
@click.option("--export", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write here; else to stdout.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr, only warnings.")
@export_options
@options.common
@options.network
@options.seed
def run(
    goal: str,
    file: Path | None,
    force: bool,
    quiet: bool,
    form: Literal["md", "json"] | None,
    appendix: bool,
    checklist: bool,
) -> int:
    """Make a plan for GOAL ("-": read it from stdin), with progress on stderr."""
    from swarmtui.cli.running import Progress, ends_raise, log_to_file, result, signals_wait, started
    from swarmtui.files import WriteError, check_writable
    from swarmtui.goals import parse_goal

    try:
        words = parse_goal(sys.stdin.read() if goal == "-" else goal)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    settings = options.config()
    if file is not None:
        try:
            file = check_writable(file, force)
        except WriteError as error:
            raise Failure(error) from error
    log_to_file(settings)
    from swarmtui.swarm import Swarm

    with ends_raise(), started(Swarm(settings, resume=False)) as swarm:
        try:
            with Progress(sys.stderr, quiet) as progress:
                for address in swarm.latest.addresses:
                    progress.say(f"others join with --join {address}")
                if words.note:
                    progress.say(words.note)
                result(swarm.give_goal(words.title, words.detail))
                code = _watch(swarm, progress, settings.run.stall_s)
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
        except Terminated as end:
            code = end.exit_code
        with signals_wait():
            view = swarm.latest
            summary = swarm.summary
            if view.plan is not None:
                text = as_text(view.plan, view.agents, form, file, appendix, checklist)
                _write(text, file, force)
    _report(view, summary, code, file)
    return code


def _watch(swarm: Swarm, progress: Progress, patience: float) -> int:
    """Wait until the plan is done (0) or has stood still for `patience` seconds (3)."""
    still_since: float | None = None
    while True:
        view = swarm.latest
        progress.show(view)
        if (error := swarm.error) is not None:
            raise Failure(error, error.remedy)
        plan = view.plan
        if plan is not None and plan.done:
            return 0
        if plan is None or not plan.stalled:
            still_since = None
        else:
            still_since = still_since or time.monotonic()
            if time.monotonic() - still_since >= patience:
                return EXIT_STALLED
        time.sleep(LOOK_SECONDS)


def _write(text: str, file: Path | None, force: bool) -> None:
    from swarmtui.files import WriteError, write_whole

    if file is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        write_whole(file, text, force)
    except WriteError as error:
        raise Failure(error) from error


def _report(view: SwarmView, summary: dict[str, Any], code: int, file: Path | None) -> None:
    """Say on stderr how it ended and what it took."""
    plan = view.plan
    if code == EXIT_STALLED and plan is not None:
        for reason in reasons(plan):
            click.echo(f"stalled: {reason}", err=True)
        click.echo("agents and quorum: --set agents.scorers=3, --set policy.quorum=1 and the like", err=True)
    if plan is None:
        click.echo("swarmtui: there is no plan yet, so nothing was exported", err=True)
    elif code not in (0, EXIT_STALLED):
        click.echo("swarmtui: interrupted; exported what there is. `swarmtui` goes on with the plan", err=True)
    if file is not None and plan is not None:
        click.echo(f"written: {file}", err=True)
    click.echo(in_words(summary), err=True)


def reasons(plan: PlanView) -> list[str]:
    """Why nothing moves: for the whole plan, else for each task that stands still."""
    from swarmtui.plaintext import one_line

    found = [stall.reason for stall in plan.stalled]
    found = found or [f"“{task.title}”: {task.stalled.reason}" for task in plan.tasks.values() if task.stalled]
    return [one_line(reason) for reason in found]


def in_words(summary: dict[str, Any]) -> str:
    """The figures of a run in two lines."""
    calls = summary.get("calls", {})
    each = ", ".join(f"{name} {count}" for name, count in calls.items())
    extra = "".join(f", {summary[key]} {key}" for key in ("failed", "cancelled") if summary.get(key))
    tokens, cached = summary.get("tokens_in", 0), summary.get("tokens_cached", 0)
    line = (
        f"{summary.get('seconds', 0) / 60:.1f} min; {sum(calls.values())} model calls ({each or 'none'}{extra}); "
        f"{tokens} tokens in ({cached} cached), {summary.get('tokens_out', 0)} out; {summary.get('ops', 0)} ops"
    )
    if not calls:
        return line
    return (
        f"{line}\nmodel busy {summary.get('busy_share', 0):.0%} of the time since the goal; of the tokens through it "
        f"{summary.get('unused_share', 0):.0%} went into nothing that the plan used, "
        f"{summary.get('rivals_share', 0):.0%} into drafts that were weighed and lost"
    )
