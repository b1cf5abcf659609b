"""The options that every command takes, before or after its name, and the settings that come of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from swarmtui.cli.failure import Failure
from swarmtui.files import expanded

Command = TypeVar("Command", bound=Callable[..., Any])

_GIVEN = "swarmtui.given"
"""Key in the context's shared notes: setting → value, as flags gave it. What stands later on the line wins."""


def _note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None and value != ():
        context.meta.setdefault(_GIVEN, {})[parameter.name] = value


def _option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    return click.option(*names, expose_value=False, callback=_note, **settings)


def _presets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from swarmtui import paths

    return [name for name in paths.presets() if name.startswith(incomplete)]


def common(command: Command) -> Command:
    """Give a command the options that all share."""
    for option in reversed(
        (
            _option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Config file."),
            _option("--preset", metavar="NAME", shell_complete=_presets, help="Settings to start from."),
            _option("--model", metavar="MODEL", help="auto, scripted, a path, a server's address, or part of a name."),
            _option("--data-dir", metavar="DIR", help="Folder of journals, keys and the log."),
            _option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Any setting; may be repeated."),
            click.option("--debug", is_flag=True, expose_value=False, help="Show where an error comes from."),
        )
    ):
        command = option(command)
    return command


def network(command: Command) -> Command:
    """Give a command the options that say which swarm it joins, and how."""
    for option in reversed(
        (
            _option("--swarm", "swarm__name", metavar="NAME", help="Name of the swarm."),
            _option("--join", "swarm__join", multiple=True, metavar="ADDR", help="Peer to dial; may be repeated."),
            _option("--listen", "swarm__listen", metavar="WHERE", help="local, lan or an IP address."),
            _option("--port", "swarm__port", type=int, metavar="N", help="TCP port; 0: any."),
            _option("--mdns/--no-mdns", "swarm__mdns", default=None, help="Find peers on the local network."),
        )
    ):
        command = option(command)
    return command


def seed(command: Command) -> Command:
    """Give a command the option that makes agents' choices repeatable."""
    return _option("--seed", type=click.IntRange(min=0), metavar="N", help="Repeat the agents' choices.")(command)


def config() -> Any:
    """Return the settings (a :class:`swarmtui.config.Config`) that the options, environment and files make.

    Raises:
        click.UsageError: an option's value is wrong.
        Failure: a setting in a file or the environment is wrong.
    """
    from swarmtui.config import ConfigError, load

    given = dict(click.get_current_context().meta.get(_GIVEN, {}))
    file = given.pop("config", None) or os.environ.get("SWARMTUI_CONFIG")
    preset = given.pop("preset", None)
    flags = {**_assignments(given.pop("assignments", ())), **{key.replace("__", "."): given[key] for key in given}}
    try:
        return load(flags, os.environ, expanded(file) if file else None, preset)
    except ConfigError as error:
        if str(error).startswith("--"):
            raise click.UsageError(str(error)) from error
        raise Failure(error) from error


def preset() -> str:
    """Return the preset that the options name, else the default one; config files aren't looked at."""
    from swarmtui.config import DEFAULT_PRESET

    return str(click.get_current_context().meta.get(_GIVEN, {}).get("preset", DEFAULT_PRESET))


def _assignments(texts: tuple[str, ...]) -> dict[str, Any]:
    """Read KEY=VALUE as environment variables are read.

    Raises:
        click.UsageError: there is no `=`.
    """
    from swarmtui.config import SETTINGS, ConfigError, parse

    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals:
            raise click.UsageError(f"--set {text}: write it as KEY=VALUE, e.g. --set policy.max_depth=2")
        try:
            found[key] = parse(SETTINGS[key], value, f"--set {key}") if key in SETTINGS else value
        except ConfigError as error:
            raise click.UsageError(str(error)) from None
    return found
