"""`swarmtui config`: writes and shows the settings."""

from __future__ import annotations

from pathlib import Path

import click

from swarmtui.cli import options
from swarmtui.cli.failure import Failure


@click.group()
def config() -> None:
    """Write or show the settings."""


@config.command(epilog="\b\nExamples:\n  swarmtui config init\n  swarmtui config init my.toml --preset strict")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@options.common
def init(file: Path | None, force: bool) -> None:
    """Write a commented config file with every setting (to the usual place, or to FILE)."""
    from swarmtui import paths
    from swarmtui.config import ConfigError, template
    from swarmtui.files import WriteError, reason_of, write_whole

    target = file or paths.config_file()
    try:
        if file is None:
            target.parent.mkdir(parents=True, exist_ok=True)
        text = template(options.preset())
        click.echo(f"written: {write_whole(target, text, force)}", err=True)
    except (ConfigError, WriteError) as error:
        raise Failure(error) from error
    except OSError as error:
        raise Failure(f"{target.parent} can't be made ({reason_of(error)})", "name a FILE to write to") from error


@config.command(epilog="\b\nExample:\n  SWARMTUI_SWARM_PORT=4001 swarmtui config show --preset tiny")
@options.common
@options.network
@options.seed
def show() -> None:
    """Print the settings that flags, environment, file and preset make together (a secret is hidden)."""
    from swarmtui.config import as_toml

    click.echo(as_toml(options.config()), nl=False)


@config.command()
def presets() -> None:
    """List the presets."""
    from swarmtui import paths

    for name in paths.presets():
        first = paths.preset(name).read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        click.echo(first if first.startswith(f"{name}:") else name)
