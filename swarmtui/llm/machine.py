"""What this machine has, cores and memory, and how much of it an engine is to use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import msgspec


class EngineNumbers(Protocol):
    """How the engine is to run; 0: let it choose."""

    @property
    def threads(self) -> int: ...
    @property
    def context(self) -> int: ...
    @property
    def slots(self) -> int: ...
    @property
    def gpu_layers(self) -> int: ...


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine runs. 0 means: let it choose."""

    threads: int = 0
    context: int = 0
    """Tokens per request, prompt and answer (2,048 if 0)."""
    slots: int = 0
    """Requests worked on at the same time; the KV cache grows with it (4 if 0)."""
    gpu_layers: int = 0


def physical_cores() -> int:
    """Cores that this process may use, threads of one core counted once: more threads than that slow llama.cpp down."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores = set()
    for cpu in usable:
        folder = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        try:
            cores.add(((folder / "physical_package_id").read_text(), (folder / "core_id").read_text()))
        except OSError:
            return max(1, len(usable) // 2) if len(usable) > 4 else max(1, len(usable))
    return max(1, len(cores))


def total_memory() -> int:
    """Bytes of memory; 0 if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0
