"""Paths as people type them, and files written for them: whole or not at all, never over another unasked.

Also what the system says when that fails, as when anything else of it does.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


class WriteError(Exception):
    """A file wasn't written; `str()` says why, and what to do."""


def reason_of(error: BaseException) -> str:
    """Return why something failed, in the system's own words if it knows ("Permission denied"), else in the error's."""
    return getattr(error, "strerror", None) or str(error)


def expanded(path: str | Path) -> Path:
    """Return a path that a person typed with `~` put in; `~name` of nobody here stays as it is, as in a shell."""
    return Path(os.path.expanduser(path))


def check_writable(path: Path, force: bool = False) -> Path:
    """Return the path that :func:`write_whole` would write, or say now why it couldn't.

    Raises:
        WriteError: it exists and `force` is off, it's a folder, its name can't be one, or its folder is missing or
            read-only.
    """
    path = expanded(path).absolute()
    try:
        return _checked(path, force)
    except OSError as error:  # a name too long, a folder of somebody else's
        raise WriteError(f"{_short(path)} can't be written ({reason_of(error)}): choose another name") from None


def _checked(path: Path, force: bool) -> Path:
    if _is_stream(path):
        return path
    if path.is_symlink():
        path = path.resolve()
    if path.is_dir():
        raise WriteError(f"{path} is a folder: name a file")
    if path.exists() and not force:
        raise WriteError(f"{path} exists: choose another name, or say that it may be replaced (--force)")
    if not path.parent.is_dir():
        raise WriteError(f"the folder {path.parent} doesn't exist: make it, or choose another")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise WriteError(f"the folder {path.parent} can't be written to: choose another")
    return path


def _short(path: Path) -> str:
    """Return a path fit for a sentence, however long it is."""
    text = str(path)
    return text if len(text) <= 100 else f"{text[:48]}…{text[-48:]}"


def _is_stream(path: Path) -> bool:
    """True for a terminal, a pipe, /dev/null: there's nothing in it to keep, and its name mustn't become a file's."""
    return path.exists() and not path.is_file() and not path.is_dir()


def write_whole(path: Path, text: str, force: bool = False) -> Path:
    """Write a text file in UTF-8. At every moment the path holds all of the text, or what it held before.

    A device or pipe (/dev/stdout, /dev/null) is written to as it is.

    Returns:
        The absolute path that was written.

    Raises:
        WriteError: as :func:`check_writable`, or the disk is full or fails.
    """
    path = check_writable(path, force)
    if _is_stream(path):
        return _pour(path, text)
    part = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _put(part, path, force)
    except FileExistsError:
        raise WriteError(f"{path} was made by somebody else meanwhile: choose another name") from None
    except OSError as error:
        raise WriteError(f"{path} couldn't be written: {reason_of(error)}") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    return path


def _pour(path: Path, text: str) -> Path:
    try:
        with path.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        raise WriteError(f"{path} couldn't be written: {reason_of(error)}") from None
    return path


def _put(part: Path, path: Path, force: bool) -> None:
    """Give the finished file its name; without `force`, only if nobody has taken it meanwhile."""
    if force:
        os.replace(part, path)
        return
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(path) from None
        os.replace(part, path)
