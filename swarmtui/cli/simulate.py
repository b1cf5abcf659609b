"""`swarmtui simulate`: whole swarms in virtual time, under every fault."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from swarmtui.cli.failure import Failure
from swarmtui.cli.progress import Progress
from swarmtui.plaintext import clean

if TYPE_CHECKING:
    from swarmtui.sim.figures import Figures
    from swarmtui.sim.judgement import Outcome
    from swarmtui.sim.ledger import Ask, Ledger
    from swarmtui.sim.scenario import Scenario
    from swarmtui.sim.trace import Teller

LABELS = {
    "runs": "runs",
    "peers": "peers in all",
    "ops": "ops",
    "divergences": "divergences (must be 0)",
    "double_results": "double results (must be 0)",
    "stalled_plans": "stalled plans (must be 0)",
    "failed": "runs in which anything else was wrong (must be 0)",
    "takeovers": "takeovers",
    "takeover_p50_s": "takeover, p50 (virtual s)",
    "takeover_p99_s": "takeover, p99 (virtual s)",
    "observers": "observers",
    "observer_catch_up_p50_s": "observer catch-up, p50 (virtual s)",
    "observer_catch_up_p99_s": "observer catch-up, p99 (virtual s)",
    "ops_heard_by_observers_alone": "ops that only an observer heard",
    "finished_after_healing_p99_s": "plans done after the healing, p99 (virtual s)",
    "rest_p99_s": "longest rest after the healing, p99 (virtual s)",
    "duplicated_execution": "share of tasks done twice",
    "flipped_splits": "share of accepted splits that flipped",
    "bytes_per_op": "bytes sent per op",
    "messages_per_op": "messages sent per op",
}


def _span(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, int]:
    """Two numbers, A..B or A-B, or one."""
    found = re.fullmatch(r"(\d+)(?:(?:\.\.|-)(\d+))?", value)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise click.BadParameter(f"{value!r} isn't A..B", context, parameter)
    return int(found[1]), int(found[2] or found[1])


@click.command(
    epilog="\b\nExamples:\n  swarmtui simulate --seeds 0..299 --jobs 2\n  swarmtui simulate --seed 17 --story\n"
    "  swarmtui simulate --seeds 0..49 --peers 20..50 --faults loss,partition --json\n"
    "  swarmtui simulate --seeds 0..9999 --log runs.jsonl\n"
)
@click.option("--seeds", callback=_span, default="0..99", metavar="A..B", help="Seeds to run.")
@click.option("--seed", type=int, metavar="S", help="Run this one alone.")
@click.option("--peers", callback=_span, default="5..12", metavar="N", help="Members of a swarm, fewest-most.")
@click.option("--faults", metavar="A,B", help="Kinds of faults, all in each run; default: drawn anew for each.")
@click.option("--thin", is_flag=True, help="Large swarms: few agents, many that only hold, a fifth hostile.")
@click.option("--jobs", type=click.IntRange(1), default=1, metavar="J", help="Processes.")
@click.option(
    "--log",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write what comes of each seed; the same command goes on where it was cut off.",
)
@click.option("--json", "as_json", is_flag=True, help="Figures as one JSON object.")
@click.option("--story", is_flag=True, help="With --seed: tell who did what, what went wrong when, what it came to.")
@click.option("--trace", is_flag=True, help="With --seed: show every event.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an error comes from.")
def simulate(
    seeds: tuple[int, int],
    seed: int | None,
    peers: tuple[int, int],
    faults: str | None,
    thin: bool,
    jobs: int,
    log: Path | None,
    as_json: bool,
    story: bool,
    trace: bool,
) -> int:
    """Simulate swarms: real peers and agents, virtual time, every fault. A seed replays to the same hash.

    Exit 1 if anything that has to hold didn't, with the command that tells that seed's story. Ctrl-C shows the figures
    so far.
    """
    from swarmtui.sim.dice import KINDS
    from swarmtui.sim.figures import drawn
    from swarmtui.sim.ledger import Ask

    if (trace or story) and seed is None:
        raise click.UsageError(f"--{'trace' if trace else 'story'} shows one run: say which by --seed S")
    if trace and story:
        raise click.UsageError("--story or --trace: one of them")
    if seed is not None and log is not None:
        raise click.UsageError("--log is for many runs: --seeds A..B")
    if peers[0] < 4:
        raise click.UsageError("a swarm needs an operator, a decomposer, a scorer and an executor: 4 peers")
    if thin and (peers[1] < 40 or faults is not None):
        raise click.UsageError("--thin draws its own faults, for swarms of at least 40: add --peers N")
    kinds = tuple(part.strip() for part in faults.split(",") if part.strip()) if faults is not None else None
    unknown = sorted(set(kinds or ()) - set(KINDS))
    if unknown:
        raise click.UsageError(f"no such fault: {', '.join(unknown)}. There are: {', '.join(KINDS)}")
    if seed is not None:
        return _one(drawn(seed, peers, kinds, thin), story, trace, as_json)
    return _many(range(seeds[0], seeds[1] + 1), Ask(peers=peers, faults=kinds, thin=thin), jobs, log, as_json)


def _many(seeds: range, ask: Ask, jobs: int, log: Path | None, as_json: bool) -> int:
    """Run many scenarios and show the figures, also when it's interrupted."""
    from swarmtui.cli.failure import EXIT_INTERRUPTED
    from swarmtui.sim.figures import Figures

    figures, began, interrupted = Figures(), time.perf_counter(), False
    try:
        with _ledger(log, ask) as ledger:
            _run(seeds, ask, jobs, ledger, figures)
    except KeyboardInterrupt:
        interrupted = True
        go_on = ", the same command goes on from here" if log is not None else ""
        click.echo(f"swarmtui: interrupted after {figures.runs:,} of {len(seeds):,} seeds{go_on}", err=True)
    told = figures.told()
    seconds = time.perf_counter() - began
    if as_json:
        click.echo(json.dumps(told | {"seconds": round(seconds, 1)}))
    elif figures.runs:
        for name, label in LABELS.items():
            click.echo(f"{label:50} {told[name]:>12,}")
        click.echo(f"{'real seconds':50} {seconds:>12,.1f}")
    return EXIT_INTERRUPTED if interrupted else 1 if figures.bad else 0


def _run(seeds: range, ask: Ask, jobs: int, ledger: Ledger | None, figures: Figures) -> None:
    """Add up what came of the seeds, those of the log first."""
    from swarmtui.sim.figures import many

    known = ledger.outcomes if ledger is not None else {}
    for seed in seeds:
        if seed in known:
            figures.add(known[seed])
            _complain(known[seed], ask)
    left = [seed for seed in seeds if seed not in known]
    progress = Progress(len(left), "seeds", sys.stderr)
    try:
        for outcome in many(left, ask.peers, ask.faults, jobs, ask.thin):
            if ledger is not None:
                ledger.add(outcome)
            figures.add(outcome)
            if not outcome.good:
                progress.clear()
                _complain(outcome, ask)
            progress.step(f"{len(figures.bad)} wrong" if figures.bad else "")
    finally:
        progress.clear()


def _ledger(log: Path | None, ask: Ask) -> AbstractContextManager[Ledger | None]:
    from swarmtui.files import reason_of
    from swarmtui.sim.ledger import Ledger, LedgerError

    if log is None:
        return nullcontext()
    try:
        return Ledger(log, ask)
    except LedgerError as error:
        raise Failure(error, "name another file with --log") from error
    except OSError as error:
        raise Failure(f"{log} can't be used ({reason_of(error)})", "name another file with --log") from error


def _complain(outcome: Outcome, ask: Ask) -> None:
    """Say what's wrong with a run, and how to look at it."""
    if outcome.good:
        return
    again = f"--seed {outcome.seed} --peers {ask.peers[0]}..{ask.peers[1]}"
    again += f" --faults {shlex.quote(','.join(ask.faults))}" if ask.faults is not None else ""
    again += " --thin" if ask.thin else ""
    click.echo(f"✗ seed {outcome.seed}: swarmtui simulate {again} --story  (or --trace: every event)", err=True)
    for violation in outcome.violations[:5]:
        click.echo(clean(f"    {violation.rule}: {violation.what[:500]}"), err=True)


def _one(scenario: Scenario, story: bool, trace: bool, as_json: bool) -> int:
    """Run one scenario and tell what came of it."""
    import msgspec

    from swarmtui.sim.run import run

    outcome = run(scenario, _teller(scenario, story, trace))
    if as_json:
        click.echo(msgspec.json.encode(outcome).decode())
    else:
        done = f"done {outcome.finished_s:.0f} s later" if outcome.finished_s >= 0 else "not done"
        click.echo(
            f"seed {outcome.seed}: {outcome.peers} peers, {outcome.ops} ops, {outcome.tasks} tasks done, healed at "
            f"{scenario.heal_s:.0f} s, {done}, trace {outcome.digest}"
        )
        for violation in outcome.violations:
            _show(f"✗ {violation.rule}: {violation.what}")
    return 0 if outcome.good else 1


def _teller(scenario: Scenario, story: bool, trace: bool) -> Teller | None:
    """Who tells of the run; who's in it is told at once."""
    from swarmtui.sim.story import Story
    from swarmtui.sim.trace import Everything

    if story:
        told = Story(scenario, _show)
        told.begin()
        return told
    if not trace:
        return None
    for number, member in enumerate(scenario.members):
        click.echo(f"member {number}: {member}")
    click.echo(f"policy: {scenario.policy}")
    return Everything(_show)


def _show(line: str) -> None:
    """Hostile members write to terminals, too."""
    click.echo(clean(line))
