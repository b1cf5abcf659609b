"""The command line: `main` is what the console script calls. One file per group of commands."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click

from swarmtui.cli.failure import EXIT_INTERRUPTED, Failure, Terminated
from swarmtui.cli.root import cli

__all__ = ["execute", "main"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main() -> None:
    """Run the command that was typed and end the process with its exit code."""
    _open_streams()
    sys.exit(execute(sys.argv[1:]))


def _open_streams() -> None:
    """Give standard streams that are closed (`2>&-`) the null device: a file opened later would take their place."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def _close_output() -> None:
    """Nothing more can be written: neither by us nor by Python, which flushes when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def execute(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code: 0, 1 (failed), 2 (usage), 3 (stalled), 130 (Ctrl-C), 143 (SIGTERM),
    129 (SIGHUP: the terminal is gone).

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
    except Terminated as end:
        return end.exit_code
    except BrokenPipeError:  # `swarmtui plans | head`: the reader has seen enough
        _close_output()
        return 1
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            _close_output()
            click.echo(f"swarmtui: the output can't be written: {os.strerror(error.errno)}", err=True)
            return 1
        name = type(error).__name__
        click.echo(f"swarmtui: unexpected {name}: {error} (add --debug to see where; please report it)", err=True)
        return 1
    return result if isinstance(result, int) else 0
