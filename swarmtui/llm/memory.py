"""Whether a model fits in this machine's memory: reckoned before anything is loaded, from the file's header alone.

What a model needs is the sum of

- its weights: the file's size (they're mapped into memory whole);
- the KV cache: cells × layers × KV heads × (key + value length) × 2 bytes. There are cells for a whole request in
  each slot and one for the urgent, and for the standing instructions. Models that attend to a window, or not at all,
  in some layers need less;
- room to compute in: for the logits of a batch over the vocabulary, and for the program itself.

It's compared with the memory that is free now (what the system could give without swapping) and with all there is,
both within the limits of a container.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from swarmtui.llm.machine import EngineNumbers, total_memory

SLOTS = 4
"""Requests worked on at the same time, unless the settings say otherwise."""
EXPRESS = 1
"""Further sequences, for urgent requests: those needn't wait until an answer has been written."""
PINS = 8
"""Sequences kept for standing instructions, which outlive the requests."""
PIN_TOKENS = 512
"""Longer instructions aren't kept so."""
CONTEXT = 2_048
"""Tokens that a request may take, unless the settings say otherwise."""
LEAST_CONTEXT = 512
"""With fewer the prompts of the roles don't fit."""
BATCH = 256
"""Most tokens of one step."""
PROGRAM = 160 << 20
"""Bytes of the engine process without a model (measured)."""
BYTES_PER_VALUE = 2
"""The KV cache holds half-precision numbers."""
ASSUMED_VOCABULARY = 128_000

Verdict: TypeAlias = Literal["fits", "tight", "too large"]


def cells(slots: int, context: int) -> int:
    """Tokens that the KV cache has room for, in all sequences together: they never need more."""
    return (slots + EXPRESS) * context + PINS * PIN_TOKENS


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What a header says that memory depends on. Zeros where it's silent."""

    cell: int = 0
    """Bytes of a token in the KV cache (an upper bound)."""
    vocabulary: int = 0


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of main memory; 0 if unknown."""

    total: int
    free: int


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """How a model and this machine's memory go together."""

    verdict: Verdict
    """tight: more than is free now, though not more than there is."""
    needs: int
    weights: int
    cache: int
    memory: Memory

    def in_words(self) -> str:
        """For a person: what's needed and what's there."""
        free = f", {gigabytes(self.memory.free)} free now" if self.memory.free else ""
        return (
            f"it needs {gigabytes(self.needs)} of memory (weights {gigabytes(self.weights)}, "
            f"KV cache {gigabytes(self.cache)}); this machine has {gigabytes(self.memory.total)}{free}"
        )


def gigabytes(count: int) -> str:
    """Bytes for a person: '0.1 GB', '13 GB'."""
    return f"{count / 1e9:.0f} GB" if count >= 9.95e9 else f"{count / 1e9:.1f} GB"


def shape(architecture: str, metadata: Mapping[str, Any], lengths: Mapping[str, int]) -> Shape:
    """Read a header's figures; what makes no sense counts as silence."""

    def of(name: str) -> Any:
        return metadata.get(f"{architecture}.{name}")

    layers = _number(of("block_count"), 10_000)
    heads = max(1, _number(_first(of("attention.head_count")), 100_000))
    width = _number(of("embedding_length"), 10_000_000) // heads
    key = _number(of("attention.key_length"), 1_000_000) or width
    value = _number(of("attention.value_length"), 1_000_000) or width
    per_layer = of("attention.head_count_kv")
    if isinstance(per_layer, Sequence) and not isinstance(per_layer, str):
        kv_heads = sum(_number(each, 100_000) for each in per_layer[:layers])
    else:
        kv_heads = layers * (_number(per_layer, 100_000) or heads)
    vocabulary = lengths.get("tokenizer.ggml.tokens", 0) or _number(of("vocab_size"), 100_000_000)
    return Shape(cell=kv_heads * (key + value) * BYTES_PER_VALUE, vocabulary=min(vocabulary, 100_000_000))


def _first(value: Any) -> Any:
    return max(value, default=0) if isinstance(value, list) else value


def _number(value: Any, most: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else 0


def fit(weights: int, shape: Shape, trained: int, numbers: EngineNumbers | None, memory: Memory) -> Fit:
    """Reckon.

    Args:
        weights: bytes of the file, all parts.
        shape: of its header.
        trained: tokens of context that it was trained for; 0 if unknown.
        numbers: the engine's settings; None: the usual ones.
        memory: what there is.
    """
    slots = (numbers.slots if numbers else 0) or SLOTS
    context = (numbers.context if numbers else 0) or CONTEXT
    context = min(context, trained) if trained else context
    cache = shape.cell * cells(slots, context)
    compute = 2 * BATCH * 4 * (shape.vocabulary or ASSUMED_VOCABULARY)
    needs = weights + cache + compute + PROGRAM
    on_gpu = bool(numbers and numbers.gpu_layers)
    verdict: Verdict = "fits"
    if not on_gpu and memory.total and needs > memory.total:
        verdict = "too large"
    elif not on_gpu and memory.free and needs > memory.free:
        verdict = "tight"
    return Fit(verdict=verdict, needs=needs, weights=weights, cache=cache, memory=memory)


def memory(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> Memory:
    """What this machine has, or this container if it may have less."""
    total = total_memory()
    free = _available(proc)
    for limit, used in _limits(proc, cgroups):
        if 0 < limit < (total or limit + 1):
            total = limit
            free = min(free or limit, max(0, limit - used))
    if not free and sys.platform == "darwin":
        # The system tells no single figure for what it could free; it starts to compress at about this.
        free = total * 7 // 10
    return Memory(total=total, free=free)


def _available(proc: Path) -> int:
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0


def _limits(proc: Path, root: Path) -> list[tuple[int, int]]:
    """(bytes allowed, bytes used) of each control group that this process is in; page cache doesn't count as used."""
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines[:64]:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            names, folder = ("memory.max", "memory.current"), root
        elif "memory" in controllers.split(","):
            names, folder = ("memory.limit_in_bytes", "memory.usage_in_bytes"), root / "memory"
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(parts), -1, -1):
            place = folder.joinpath(*parts[:depth])
            limit, used = _read(place / names[0]), _read(place / names[1])
            if limit:
                found.append((limit, max(0, used - _cached(place / "memory.stat"))))
    return found


def _read(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # "max": no limit
        return 0


def _cached(file: Path) -> int:
    try:
        for line in file.read_text().splitlines():
            if line.startswith(("inactive_file ", "total_inactive_file ")):
                return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 0
