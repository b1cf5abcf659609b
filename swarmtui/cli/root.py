"""The command `swarmtui` itself: finds the sub-command, or takes what was typed as a goal."""

from __future__ import annotations

import difflib
import importlib

import click

from swarmtui import __version__
from swarmtui.cli.options import common, network, seed

COMMANDS = {
    "open": ("swarmtui.cli.screen", "open_", "Open the terminal (also without this word)."),
    "run": ("swarmtui.cli.run", "run", "Make a plan without a screen."),
    "observe": ("swarmtui.cli.observe", "observe", "Listen to a swarm, saying nothing."),
    "plans": ("swarmtui.cli.plans", "plans", "List the plans kept on this machine."),
    "export": ("swarmtui.cli.plans", "export", "Write a kept plan as Markdown or JSON."),
    "models": ("swarmtui.cli.models", "models", "List the models found, and which is used; get others."),
    "judge": ("swarmtui.cli.judge", "judge", "Try a model as a judge: mark a file of splits."),
    "doctor": ("swarmtui.cli.machine", "doctor", "Check this machine, with a remedy for each fault."),
    "simulate": ("swarmtui.cli.simulate", "simulate", "Simulate swarms in virtual time, under every fault."),
    "paths": ("swarmtui.cli.machine", "paths", "Show the folders and files in use."),
    "config": ("swarmtui.cli.settings", "config", "Write or show the settings."),
}
"""Name → (module, command, what `--help` says of it). A module is imported when its command is used."""

EXAMPLES = """\b
Examples:
  swarmtui                                       open the terminal
  swarmtui "Plan a two-week trip to Japan"       open it and start at once
  swarmtui run "Plan a party" --export plan.md   no screen
  swarmtui observe --join /ip4/192.0.2.7/tcp/4001/p2p/12D3Koo…

A goal that is also a command's name: swarmtui open "run".
Completion for bash: eval "$(_SWARMTUI_COMPLETE=bash_source swarmtui)"; zsh and fish likewise.
"""


class Root(click.Group):
    """A group whose commands are imported when used, and whose default command takes a goal."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them: `--help` is quick."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in COMMANDS:
            return super().resolve_command(ctx, args)
        if " " not in args[0] and (near := difflib.get_close_matches(args[0], COMMANDS, 1, 0.75)):
            raise click.UsageError(
                f"There is no command {args[0]!r}. Did you mean {near[0]!r}? If it's a goal: swarmtui open {args[0]!r}",
                ctx,
            )
        return "open", self.get_command(ctx, "open"), args


@click.group(
    cls=Root,
    invoke_without_command=True,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="[OPTIONS]",
    subcommand_metavar='[COMMAND …] | ["GOAL"]',
)
@common
@network
@seed
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> int | None:
    """A swarm of local models that draft, vote on, claim and work off one plan, without a leader."""
    if ctx.invoked_subcommand is None:
        command = cli.get_command(ctx, "open")
        assert command is not None
        result: int | None = ctx.invoke(command)
        return result
    return None
