"""`swarmtui`, `swarmtui "GOAL"`: the terminal."""

from __future__ import annotations

import os
import sys

import click

from swarmtui.cli import options
from swarmtui.cli.failure import Failure

EXAMPLES = """\b
Examples:
  swarmtui
  swarmtui "Plan a two-week trip to Japan" --preset tiny
  swarmtui open "run" --model scripted
"""


@click.command("open", epilog=EXAMPLES)
@click.argument("goal", required=False)
@options.common
@options.network
@options.seed
def open_(goal: str | None) -> int:
    """Open the terminal; with GOAL, start a plan at once."""
    settings = options.config()
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("there is no terminal here to draw on", 'use `swarmtui run "GOAL"`, which needs none')
    if os.environ.get("TERM", "dumb") == "dumb":
        raise Failure("TERM says that this terminal can't move its cursor", "set TERM, e.g. TERM=xterm-256color")
    from swarmtui.cli.running import log_to_file

    log_to_file(settings)
    from swarmtui.swarm import Swarm
    from swarmtui.ui.actions import KeyConfigError
    from swarmtui.ui.app import run_app

    try:
        # A goal that is given now goes first: an older unfinished plan isn't taken up beside it.
        return run_app(Swarm(settings, resume=goal is None), settings, goal)
    except KeyConfigError as error:
        raise Failure(f"[keys] in the config: {error}") from error
