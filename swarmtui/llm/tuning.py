"""How many answers go on in one step: decided by what was measured on this machine with this model, and remembered.

On a GPU, and wherever reading the weights takes longer than reckoning with them, several answers in one step cost
hardly more than one. Where that isn't so, one after the other is better: the first is done earlier.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import msgspec

from swarmtui.llm.machine import EngineNumbers
from swarmtui.llm.wire import Speed

log = logging.getLogger(__name__)

WORTHWHILE = 0.05
"""A wider step must be faster by this share at least, and by more than the measurements differ among themselves."""
REMEMBERED = 64
"""Models and settings whose figures are kept."""


class Measured(msgspec.Struct, frozen=True):
    """What was measured of a model on this machine."""

    prefill: float
    """Tokens of a prompt per second."""
    speeds: tuple[Speed, ...]
    """By width, narrow to wide."""


def choose_width(speeds: Sequence[Speed], slots: int) -> int:
    """Answers per step: the narrowest that no wider one beats beyond the noise. All slots if nothing was measured."""
    if not speeds:
        return slots
    best = speeds[0]
    for each in speeds[1:]:
        if each.per_second > best.per_second * (1 + max(WORTHWHILE, best.spread + each.spread)):
            best = each
    return best.width


def in_words(speeds: Sequence[Speed], width: int) -> str:
    """The decision with its figures, for a person."""
    if not speeds:
        return "too slow to measure: answers go on together" if width > 1 else "one answer at a time"
    alone = speeds[0].per_second
    figures = ", ".join(f"{each.width}: {each.per_second:.0f} ±{each.spread:.0%}" for each in speeds)
    gain = next((each.per_second / alone for each in speeds if each.width == width), 1.0)
    chosen = f"{width} answers a step, {gain:.1f} × as fast as one" if width > 1 else "one answer at a time is fastest"
    return f"{chosen} (tokens/s by answers a step: {figures})"


def key(path: Path, settings: EngineNumbers) -> str:
    """What the figures depend on: file, settings, machine, llama.cpp."""
    try:
        stat = path.stat()
        file = f"{path.name} {stat.st_size} {stat.st_mtime_ns}"
    except OSError:
        file = path.name
    try:
        version = metadata.version("llama_cpp_python")
    except metadata.PackageNotFoundError:
        version = "?"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parts = (file, settings.threads, settings.slots, settings.gpu_layers, _processor(), cores, version)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


class Notebook:
    """A small file with the figures. What can't be read or written only means that it's measured again."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, key: str) -> Measured | None:
        """What was measured under this key."""
        return self._all().get(key)

    def write(self, key: str, measured: Measured) -> None:
        """Remember it, in place of the oldest if there are many."""
        known = self._all()
        known.pop(key, None)
        known[key] = measured
        while len(known) > REMEMBERED:
            del known[next(iter(known))]
        part = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(msgspec.json.encode(known))
            part.replace(self._file)
        except OSError as error:
            log.info("what was measured can't be kept: %s", error)

    def _all(self) -> dict[str, Measured]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, Measured])
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
            return {}
