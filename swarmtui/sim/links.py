"""Shapes of partitions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from swarmtui.plan.ops import PeerId

Blocked = Callable[[PeerId, PeerId], bool]


def partition(shape: str, peers: Sequence[PeerId], rng: random.Random) -> Blocked:
    """Which links are cut.

    Args:
        shape: see :class:`swarmtui.sim.scenario.Cut`.
        peers: all of them, in a fixed order.
        rng: who is on which side.

    Raises:
        KeyError: there's no such shape.
    """
    mixed = list(peers)
    rng.shuffle(mixed)
    middle = rng.randint(1, max(1, len(mixed) - 1))
    first = frozenset(mixed[:middle])
    return {"halves": _halves, "one-way": _one_way, "bridge": _bridge, "islands": _islands}[shape](mixed, first)


def _halves(mixed: Sequence[PeerId], first: frozenset[PeerId]) -> Blocked:
    return lambda source, target: (source in first) != (target in first)


def _one_way(mixed: Sequence[PeerId], first: frozenset[PeerId]) -> Blocked:
    return lambda source, target: source not in first and target in first


def _bridge(mixed: Sequence[PeerId], first: frozenset[PeerId]) -> Blocked:
    bridge = mixed[0]
    return lambda source, target: bridge not in (source, target) and (source in first) != (target in first)


def _islands(mixed: Sequence[PeerId], first: frozenset[PeerId]) -> Blocked:
    of = {peer: number * 3 // max(3, len(mixed)) for number, peer in enumerate(mixed)}
    return lambda source, target: of.get(source, 0) != of.get(target, 0)
