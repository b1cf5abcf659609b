"""TOML files read with the line of every key, so that a mistake can be pointed at."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from swarmtui.files import reason_of

_HEADER = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


class TomlError(ValueError):
    """A file couldn't be read; `str()` names the file and, where it's known, the line."""


def read(file: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        TomlError: it's missing, unreadable, not UTF-8, or not TOML.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TomlError(f"{file}: there is no such file") from None
    except OSError as error:
        raise TomlError(f"{file}: {reason_of(error)}") from None
    except UnicodeDecodeError:
        raise TomlError(f"{file}: isn't UTF-8 text") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, or a number of 5,000 digits, or 1,000 brackets
        raise TomlError(f"{file}: {error}") from None


def flatten(tables: dict[str, Any], deep: int = 1) -> dict[str, Any]:
    """Return the values by dotted key, going `deep` tables down ("swarm.port")."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        if isinstance(value, dict) and deep:
            flat.update({f"{key}.{inner}": v for inner, v in flatten(value, deep - 1).items()})
            if not value:
                flat[key] = value
        else:
            flat[key] = value
    return flat


def lines(file: Path) -> dict[str, int]:
    """Return the line, from 1, of each dotted key and each table header.

    Reads line by line: a key inside a multi-line string could be taken for one, which costs a wrong line in a message.
    """
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if header := _HEADER.match(line):
            table = _plain(header[1])
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            name = _plain(key[1])
            found.setdefault(f"{table}.{name}" if table else name, number)
    return found


def _plain(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))
