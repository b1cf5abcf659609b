"""`swarmtui observe`: a listener that says nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from swarmtui.cli import options
from swarmtui.cli.failure import Failure
from swarmtui.plaintext import one_line

if TYPE_CHECKING:
    from swarmtui.config import Config
    from swarmtui.view import PlanView, SwarmView

LOOK_SECONDS = 0.1
QUIET_SECONDS = 0.5
"""Changes that come this close together make one snapshot."""

GLYPHS = {
    "open": "○",
    "draft": "◇",
    "accepted": "●",
    "waiting": "…",
    "ready": "○",
    "claimed": "◐",
    "done": "✔",
    "failed": "✗",
    "superseded": "⊘",
}

EXAMPLES = """\b
Examples:
  swarmtui observe
  swarmtui observe --join /ip4/127.0.0.1/tcp/4001/p2p/12D3Koo… --once
  swarmtui observe --json | jq .fingerprint
"""


@click.command(epilog=EXAMPLES)
@click.option("--once", is_flag=True, help="One snapshot when everything is here, then end.")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each change.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=120.0,
    metavar="S",
    help="With --once: give up after S seconds (120).",
)
@options.common
@options.network
def observe(once: bool, as_json: bool, wait: float) -> int:
    """Listen to a swarm and print its plan at every change. Publishes nothing, asks for nothing."""
    from swarmtui.cli.running import ends_raise, log_to_file, started

    settings = _listener(options.config())
    log_to_file(settings)
    from swarmtui.swarm import Swarm

    told: set[str] = set()
    with ends_raise(), started(Swarm(settings, resume=False, listen_only=True)) as swarm:
        deadline = time.monotonic() + wait
        for view in _changes(swarm):
            for notice in swarm.latest.notices:
                if notice.text not in told:
                    told.add(notice.text)
                    click.echo(f"{notice.severity}: {one_line(notice.text)}", err=True)
            if (error := swarm.error) is not None:
                raise Failure(error, error.remedy)
            if view is not None and (not once or (view.complete and view.plan is not None)):
                click.echo(as_json_line(view, swarm.summary["sent"]) if as_json else snapshot(view))
                if once:
                    return 0
            if once and time.monotonic() > deadline:
                raise Failure(
                    f"the plan wasn't complete within {wait:.0f} s ({len(swarm.latest.agents)} peers heard, "
                    f"{swarm.latest.ops} ops)",
                    "name a peer with --join, or wait longer with --wait",
                )
    return 0


def _listener(config: Config) -> Config:
    """The same settings without agents."""
    none = msgspec.structs.replace(config.agents, decomposers=0, scorers=0, executors=0)
    return msgspec.structs.replace(config, agents=none)


def _changes(swarm: Any) -> Iterator[SwarmView | None]:
    """Yield each picture whose plan, ops or completeness differ from the last one's; None while nothing does."""
    shown: tuple[Any, ...] | None = None
    while True:
        view: SwarmView = swarm.latest
        now = (view.ops, view.fingerprint, view.complete, view.plan.done if view.plan else None)
        if now != shown and view.fingerprint:
            shown = now
            yield view
            time.sleep(QUIET_SECONDS)
        else:
            yield None
            time.sleep(LOOK_SECONDS)


def as_json_line(view: SwarmView, sent: int) -> str:
    """The facts of a picture in one line (docs/export.md describes it)."""
    plan = view.plan
    facts: dict[str, Any] = {
        "at": round(time.time(), 3),
        "ops": view.ops,
        "fingerprint": view.fingerprint,
        "complete": view.complete,
        "sent": sent,
        "peers": view.peers,
        "addresses": list(view.addresses),
        "plan": None,
    }
    if plan is not None:
        facts["plan"] = {
            "id": plan.id.hex(),
            "title": plan.title,
            "done": plan.done,
            "paused": plan.paused,
            "stalled": [stall.reason for stall in plan.stalled],
            "counts": dict(plan.counts),
        }
    return json.dumps(facts, ensure_ascii=False)


def snapshot(view: SwarmView) -> str:
    """A picture as text: a line about the swarm, then the tree."""
    from swarmtui.cli.running import headline
    from swarmtui.plan.narrative import plural

    heard = "complete" if view.complete else "still filling"
    ops, peers = plural(view.ops, "op"), plural(view.peers, "peer")
    lines = [f"{ops}, {heard}, fingerprint {view.fingerprint[:16]}, {peers}: {headline(view)}"]
    if view.plan is not None:
        lines += _tree(view.plan, view.plan.root, 1)
    return "\n".join(lines) + "\n"


def _tree(plan: PlanView, task_id: bytes, depth: int) -> Iterator[str]:
    task = plan.tasks[task_id]
    glyph = "!" if task.stalled else GLYPHS[task.state.value]
    yield f"{'  ' * depth}{glyph} {one_line(task.title)}  [{task.state.value}] {one_line(task.status)}".rstrip()
    for child in task.children:
        yield from _tree(plan, child, depth + 1)
