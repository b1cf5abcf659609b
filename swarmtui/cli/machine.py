"""`swarmtui doctor` and `paths`: this machine, as swarmtui sees it."""

from __future__ import annotations

import json

import click

from swarmtui.cli import options


@click.command(epilog="\b\nExample:\n  swarmtui doctor --model path/to/model.gguf")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@options.common
@options.network
def doctor(as_json: bool) -> int:
    """Check this machine: one line each, with the remedy. Exit 1 if something that's needed is missing."""
    from swarmtui import doctor as checks

    worst = 0
    for check in checks.examine(options.config()):
        worst = max(worst, check.verdict == "bad")
        if as_json:
            click.echo(json.dumps(check.facts(), ensure_ascii=False))
        else:
            glyph = {"good": "✔", "warn": "!", "bad": "✗"}[check.verdict]
            remedy = f" → {check.remedy}" if check.remedy else ""
            click.echo(f"{glyph} {check.name:10} {check.text}{remedy}")
    return worst


@click.command(epilog="\b\nExample:\n  swarmtui paths --data-dir /tmp/trial")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@options.common
def paths(as_json: bool) -> None:
    """Show the folders and files in use, and whether they exist."""
    from swarmtui.paths import all_paths

    places = all_paths(options.config().data_dir)
    if as_json:
        click.echo(json.dumps({name: str(path) for name, path in places.items()}, ensure_ascii=False))
        return
    for name, path in places.items():
        click.echo(f"{name:12} {path}{'' if path.exists() else '  (not there yet)'}")
