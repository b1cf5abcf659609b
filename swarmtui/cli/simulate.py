"""`swarmtui simulate`: whole swarms in virtual time, under every fault."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from swarmtui.sim.scenario import Scenario

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
    epilog="\b\nExamples:\n  swarmtui simulate --seeds 0..299 --jobs 2\n  swarmtui simulate --seed 17 --trace\n"
    "  swarmtui simulate --seeds 0..49 --peers 20..50 --faults loss,partition --json"
)
@click.option("--seeds", callback=_span, default="0..99", metavar="A..B", help="Seeds to run.")
@click.option("--seed", type=int, metavar="S", help="Run this one alone.")
@click.option("--peers", callback=_span, default="5..12", metavar="N", help="Members of a swarm, fewest-most.")
@click.option("--faults", metavar="A,B", help="Kinds of faults, all in each run; default: drawn anew for each.")
@click.option("--thin", is_flag=True, help="Large swarms: few agents, many that only hold, a fifth hostile.")
@click.option("--jobs", type=click.IntRange(1), default=1, metavar="J", help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="Figures as one JSON object.")
@click.option("--trace", is_flag=True, help="With --seed: show every event.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an error comes from.")
def simulate(
    seeds: tuple[int, int],
    seed: int | None,
    peers: tuple[int, int],
    faults: str | None,
    thin: bool,
    jobs: int,
    as_json: bool,
    trace: bool,
) -> int:
    """Simulate swarms: real peers and agents, virtual time, every fault. A seed replays to the same hash.

    Exit 1 if anything that has to hold didn't, with the command that replays it.
    """
    from swarmtui.sim.dice import KINDS
    from swarmtui.sim.figures import Figures, drawn, many

    if trace and seed is None:
        raise click.UsageError("--trace shows one run: say which by --seed S")
    if peers[0] < 4:
        raise click.UsageError("a swarm needs an operator, a decomposer, a scorer and an executor: 4 peers")
    if thin and (peers[1] < 40 or faults is not None):
        raise click.UsageError("--thin draws its own faults, for swarms of at least 40: add --peers N")
    kinds = tuple(part.strip() for part in faults.split(",") if part.strip()) if faults is not None else None
    unknown = sorted(set(kinds or ()) - set(KINDS))
    if unknown:
        raise click.UsageError(f"no such fault: {', '.join(unknown)}. There are: {', '.join(KINDS)}")
    if seed is not None:
        return _one(drawn(seed, peers, kinds, thin), trace, as_json)
    figures, began = Figures(), time.perf_counter()
    again = f"--peers {peers[0]}..{peers[1]}" + (f" --faults {','.join(kinds)}" if kinds is not None else "")
    again += " --thin" if thin else ""
    for outcome in many(range(seeds[0], seeds[1] + 1), peers, kinds, jobs, thin):
        figures.add(outcome)
        if not outcome.good:
            click.echo(f"✗ seed {outcome.seed}: swarmtui simulate --seed {outcome.seed} {again} --trace", err=True)
            for violation in outcome.violations[:5]:
                click.echo(f"    {violation.rule}: {violation.what[:500]}", err=True)
    seconds = time.perf_counter() - began
    if as_json:
        click.echo(json.dumps(figures.told() | {"seconds": round(seconds, 1)}))
    else:
        told = figures.told()
        for name, label in LABELS.items():
            click.echo(f"{label:50} {told[name]:>12,}")
        click.echo(f"{'real seconds':50} {seconds:>12,.1f}")
    return 1 if figures.bad else 0


def _one(scenario: Scenario, trace: bool, as_json: bool) -> int:
    """Run one scenario and tell what came of it."""
    import msgspec

    from swarmtui.sim.run import run

    if trace:
        for number, member in enumerate(scenario.members):
            click.echo(f"member {number}: {member}")
        click.echo(f"policy: {scenario.policy}")
    outcome = run(scenario, click.echo if trace else None)
    if as_json:
        click.echo(msgspec.json.encode(outcome).decode())
    else:
        click.echo(
            f"seed {outcome.seed}: {outcome.peers} peers, {outcome.ops} ops, {outcome.tasks} tasks done, healed at "
            f"{scenario.heal_s:.0f} s, done {outcome.finished_s:.0f} s later, trace {outcome.digest}"
        )
        for violation in outcome.violations:
            click.echo(f"✗ {violation.rule}: {violation.what}")
    return 0 if outcome.good else 1
