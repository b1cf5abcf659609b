"""What processes take while harm is done to them: memory, files, threads and tasks over time, and whether it grows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

KINDS = ("rss_kb", "fds", "threads", "tasks")
ROOM = {"rss_kb": (1.2, 32 * 1024), "fds": (1.2, 12), "threads": (1.0, 3), "tasks": (1.2, 60)}
"""The last third may take this many times what the first third did, and so much more."""
WARM_UP_S = 10.0
"""Until a process has met the others."""
FEWEST = 6
"""Samples below which a life tells nothing."""

Sample = tuple[float, Mapping[str, int]]


class Curves:
    """Samples per life of a process (a restarted one begins another)."""

    def __init__(self) -> None:
        self.lives: dict[str, list[Sample]] = {}

    def add(self, life: str, at: float, figures: Mapping[str, int]) -> None:
        """Note what a process takes `at` seconds after the beginning."""
        self.lives.setdefault(life, []).append((at, figures))

    def long(self) -> dict[str, list[Sample]]:
        """The lives that were long enough to tell something, without their warming up."""
        warm = {life: [s for s in samples if s[0] - samples[0][0] >= WARM_UP_S] for life, samples in self.lives.items()}
        return {life: samples for life, samples in warm.items() if len(samples) >= FEWEST}

    def growth(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Per long life and kind: the medians of its first and its last third."""
        return {life: {kind: thirds(samples, kind) for kind in KINDS} for life, samples in self.long().items()}

    def complaints(self) -> list[str]:
        """What grew more than there's room for."""
        return [
            f"{life}: {kind} grew from {first:.0f} to {last:.0f}"
            for life, kinds in self.growth().items()
            for kind, (first, last) in kinds.items()
            if last > first * ROOM[kind][0] + ROOM[kind][1]
        ]

    def summary(self, points: int = 10) -> dict[str, Any]:
        """Medians over the long lives, in so many points from the beginning to the end."""
        samples = sorted((sample for life in self.long().values() for sample in life), key=lambda sample: sample[0])
        if not samples:
            return {}
        begin, end = samples[0][0], samples[-1][0] + 0.001
        slices: list[list[Sample]] = [[] for _ in range(points)]
        for sample in samples:
            slices[int((sample[0] - begin) / (end - begin) * points)].append(sample)
        filled = [part for part in slices if part]
        return {
            "lives measured": len(self.long()),
            "seconds": [round(statistics.median(at for at, _ in part)) for part in filled],
            **{
                kind: [round(statistics.median(f[kind] for _, f in part)) for part in filled]
                for kind in (*KINDS, "ops")
            },
            "highest": {kind: max(figures[kind] for _, figures in samples) for kind in KINDS},
        }


def thirds(samples: Sequence[Sample], kind: str) -> tuple[float, float]:
    """The medians of the first and the last third."""
    third = max(1, len(samples) // 3)
    first, last = samples[:third], samples[-third:]
    return statistics.median(f[kind] for _, f in first), statistics.median(f[kind] for _, f in last)
