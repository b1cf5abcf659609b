"""`swarmtui plans` and `swarmtui export`: what the journals on this machine hold."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from swarmtui.cli import options
from swarmtui.cli.failure import Failure
from swarmtui.cli.writing import as_text, export_options

if TYPE_CHECKING:
    from swarmtui.plan.replica import Replica
    from swarmtui.plan.state import Plan
    from swarmtui.plan.views import PlanView


@click.command(epilog="\b\nExamples:\n  swarmtui plans\n  swarmtui plans --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@options.common
def plans(as_json: bool) -> None:
    """List the plans that the journals on this machine hold, newest last."""
    from swarmtui.plaintext import one_line
    from swarmtui.plan.progress import counts

    found = sorted(_kept().plans.values(), key=lambda plan: plan.op.order)
    for plan in found:
        figures = counts(plan)
        started = _when(plan)
        if as_json:
            facts = {
                "id": plan.id.hex(),
                "title": plan.goal.title,
                "started": started,
                "state": _state(plan),
                **figures,
            }
            click.echo(json.dumps(facts, ensure_ascii=False))
        else:
            done = f"{figures['done']}/{figures['leaves']}"
            click.echo(f"{plan.id.hex()[:8]}  {started:19}  {_state(plan):10}  {done:>7}  {one_line(plan.goal.title)}")
    if not found and not as_json:
        click.echo(f"no plans yet in {options.config().data}", err=True)


@click.command(
    epilog="\b\nExamples:\n  swarmtui export 3f9a plan.md\n  swarmtui export japan --format json > plan.json"
)
@click.argument("plan")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@export_options
@options.common
def export(
    plan: str,
    file: Path | None,
    force: bool,
    form: Literal["md", "json"] | None,
    appendix: bool,
    checklist: bool,
) -> None:
    """Write PLAN (the start of its id, or part of its title; "last": the newest) to FILE or stdout."""
    from swarmtui.files import WriteError, check_writable, write_whole

    try:
        if file is not None:
            check_writable(file, force)
        replica = _kept()
        chosen = _choose(replica.plans.values(), plan)
        text = as_text(_view(chosen, replica), (), form, file, appendix, checklist)
        if file is None:
            sys.stdout.write(text)
        else:
            click.echo(f"written: {write_whole(file, text, force)}", err=True)
    except WriteError as error:
        raise Failure(error) from error


def _kept() -> Replica:
    """Return a replica of everything in the journals of the data folder.

    Raises:
        Failure: the data folder can't be looked into.
    """
    from swarmtui.files import reason_of
    from swarmtui.paths import Folders
    from swarmtui.peer.journal import Journal
    from swarmtui.plan.replica import TOTAL_BUDGET, Replica

    folder = options.config().data
    try:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "it's no folder")
        files = Folders(folder).all_journals()
    except OSError as error:
        raise Failure(f"the data folder {folder} can't be read ({reason_of(error)})", "see --data-dir") from error
    # An author's budget is for one swarm in one run; here lie all plans of years, most by the same few keys.
    replica = Replica(author_budget=TOTAL_BUDGET)
    for file in files:
        journal = Journal(file)
        try:
            replica.add_many(list(journal.load()))
        finally:
            journal.close()
        for text in [*journal.notices, *([journal.degraded] if journal.degraded else [])]:
            click.echo(f"swarmtui: {text}", err=True)
    for reason, count in replica.refused.items():
        click.echo(f"swarmtui: {count} ops were left out ({reason}): move older files out of {folder}", err=True)
    return replica


def _choose(held: Iterable[Plan], word: str) -> Plan:
    """Return the one plan that a word names.

    Raises:
        Failure: none or several do.
    """
    found = sorted(held, key=lambda plan: plan.op.order)
    if word == "last" and found:
        return found[-1]
    near = [plan for plan in found if plan.id.hex().startswith(word.lower())] or [
        plan for plan in found if word.casefold() in plan.goal.title.casefold()
    ]
    if not near:
        raise Failure(f"no plan here is called {word!r}", "`swarmtui plans` lists them")
    if len(near) > 1:
        ids = ", ".join(plan.id.hex()[:8] for plan in near[:5])
        raise Failure(f"{len(near)} plans fit {word!r}: {ids}", "name one by the start of its id")
    return near[0]


def _view(plan: Plan, replica: Replica) -> PlanView:
    from swarmtui.plan.picture import Picture
    from swarmtui.plan.progress import Living

    def name(peer: str) -> str:
        return "the operator" if peer == plan.operator else peer[-6:]

    # Nobody is here to be asked, so nothing is called stalled for want of agents.
    needs = frozenset(task.step.needs for task in plan.tasks.values())
    voters = frozenset(plan.policy.scorers) | {f"scorer {number}" for number in range(plan.policy.need + 1)}
    everyone = Living(frozenset({"decomposer"}), voters, {"executor": needs})
    return Picture(plan.id, name, replica.get).draw(plan, [], everyone, "")


def _state(plan: Plan) -> str:
    return "done" if plan.done else "paused" if plan.paused else "unfinished"


def _when(plan: Plan) -> str:
    from swarmtui.plan.clock import to_seconds

    try:
        return f"{datetime.fromtimestamp(to_seconds(plan.op.hlc)).astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "at no real time"
