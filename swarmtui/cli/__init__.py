"""The command line: `main` is what the console script calls. One file per group of commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from swarmtui.cli.failure import EXIT_INTERRUPTED, EXIT_TERMINATED, Failure, Terminated
from swarmtui.cli.root import cli

__all__ = ["execute", "main"]


def main() -> None:
    """Run the command that was typed and end the process with its exit code."""
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code: 0, 1 (failed), 2 (usage), 3 (stalled), 130 (Ctrl-C), 143 (SIGTERM).

    What goes wrong is one line on stderr. `--debug` (or SWARMTUI_DEBUG) lets the traceback through.
    """
    debug = "--debug" in arguments or bool(os.environ.get("SWARMTUI_DEBUG"))
    try:
        result = cli.main(list(arguments), prog_name="swarmtui", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except (click.ClickException, Failure) as error:
        if debug and error.__cause__ is not None:
            raise
        click.echo(f"swarmtui: {error}", err=True)
        return 1
    except (click.Abort, KeyboardInterrupt):
        click.echo("swarmtui: interrupted", err=True)
        return EXIT_INTERRUPTED
    except Terminated:
        return EXIT_TERMINATED
    except BrokenPipeError:  # `swarmtui plans | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            raise
        name = type(error).__name__
        click.echo(f"swarmtui: unexpected {name}: {error} (add --debug to see where; please report it)", err=True)
        return 1
    return result if isinstance(result, int) else 0
