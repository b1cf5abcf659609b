"""A copy of the bundled model that this machine reads faster: made once, at first use, and kept in the cache folder.

The bundled file is Q4_1, for which llama.cpp has no fast way through a processor's wide registers; for Q4_0 and Q8_0 it
has. What that's worth, in speed and in quality, is measured in docs/engine.md. Whatever goes wrong here only means
that the bundled file is used as it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import trio

from swarmtui.files import reason_of
from swarmtui.llm import models, process
from swarmtui.llm.machine import EngineNumbers
from swarmtui.llm.models import ModelFile

log = logging.getLogger(__name__)

FASTER = {"Q4_1": "Q8_0"}
"""Quantisation as found → as it's faster without being worse."""
GROWTH = 2.0
"""The copy's size, at most, as a multiple of the original's."""
PATIENCE_S = 300.0
LOOK_S = 0.1
FINGERPRINT = 1 << 20
"""Bytes of the file's start that tell it from another of the same name."""


class Swift(msgspec.Struct, frozen=True):
    """What came of it."""

    file: ModelFile
    """To be used: the copy, or the original. It keeps the original's name."""
    trouble: str = ""
    """Why there's no copy though there should be one."""


def wanted(file: ModelFile, numbers: EngineNumbers) -> str:
    """The quantisation of the copy that should be used for a model; '' for none.

    Only for the bundled model: a person's own files are used as they are. And only on the processor.
    """
    return FASTER.get(file.quantisation, "") if file.source == "bundled" and not numbers.gpu_layers else ""


def place(file: ModelFile, kind: str, folder: Path) -> Path:
    """Where the copy lies. Another file of the same name gets another place.

    Raises:
        OSError: the file can't be read.
    """
    with file.path.open("rb") as stream:
        digest = hashlib.sha256(stream.read(FINGERPRINT) + str(file.size).encode()).hexdigest()
    return folder / f"{file.path.stem}-as-{kind}-{digest[:12]}.gguf"


def find(file: ModelFile, numbers: EngineNumbers, folder: Path) -> ModelFile | None:
    """The copy, if there's a whole one."""
    kind = wanted(file, numbers)
    try:
        return _whole(file, place(file, kind, folder)) if kind else None
    except OSError:
        return None


async def prepare(file: ModelFile, numbers: EngineNumbers, folder: Path, command: list[str] | None = None) -> Swift:
    """The copy if one is wanted, made now if need be; else the original. Takes seconds the first time.

    Several programs may do so at once: one makes it, the others wait. Cancelled or killed, it leaves at worst a part
    that the next one removes.

    Args:
        file: the original.
        numbers: how the engine will run.
        folder: where copies lie; made if it isn't there.
        command: what writes the copy (for tests).
    """
    kind = wanted(file, numbers)
    if not kind:
        return Swift(file)
    try:
        target = await trio.to_thread.run_sync(place, file, kind, folder)
        found = _whole(file, target)
        if found is None:
            await trio.Path(folder).mkdir(parents=True, exist_ok=True)
            async with _alone(target.with_suffix(".lock")):
                found = _whole(file, target) or await _make(file, target, kind, command)
        return Swift(found)
    except (OSError, _Failed, trio.TooSlowError) as error:
        reason = reason_of(error) or "it took too long"
        log.warning("no faster copy of %s: %s", file.name, reason)
        return Swift(
            file, f"The bundled model is used as it is, which is slower: no {kind} copy in {folder} ({reason})"
        )


class _Failed(Exception):
    """The copy couldn't be made."""


@contextlib.asynccontextmanager
async def _alone(lock: Path) -> AsyncIterator[None]:
    """Wait until no other program makes the copy."""
    with lock.open("a") as file:
        with trio.fail_after(PATIENCE_S):
            while not _locked(file.fileno()):  # noqa: ASYNC110 - another process holds it: no event tells
                await trio.sleep(LOOK_S)
        yield


def _locked(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _make(file: ModelFile, target: Path, kind: str, command: list[str] | None) -> ModelFile:
    """Write the copy beside its place and move it there when it's whole. We're alone."""
    for old in target.parent.glob(f"{file.path.stem}-as-*"):
        if old.suffix != ".lock":
            old.unlink(missing_ok=True)  # parts of those that were interrupted, copies of files that are gone
    free = shutil.disk_usage(target.parent).free
    if free < file.size * GROWTH:
        raise _Failed(f"{free >> 20} MiB free there")
    part = target.with_suffix(".part")
    log.info("making a %s copy of %s", kind, file.name)
    try:
        with trio.fail_after(PATIENCE_S):
            done = await trio.run_process(
                [
                    *(command or [sys.executable, "-m", "swarmtui.llm.engine_requantise"]),
                    str(file.path),
                    str(part),
                    kind,
                ],
                stdin=subprocess.DEVNULL,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env=process.environment(),
            )
        if done.returncode != 0:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise _Failed(": ".join([process.remedy_for(done.returncode)[0], *last])[:300])
        if _whole(file, part) is None:
            raise _Failed("what was written isn't whole")
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    found = _whole(file, target)
    if found is None:
        raise _Failed("it's gone again")
    return found


def _whole(original: ModelFile, path: Path) -> ModelFile | None:
    """The copy under the original's name, if it's there and nothing speaks against it."""
    if not path.is_file():
        return None
    found = models.inspect(path, name=original.name, source=original.source)
    return None if found.problem else found
