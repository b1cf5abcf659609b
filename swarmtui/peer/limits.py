"""What a peer counts, and how it bounds what others can cost it."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from dataclasses import dataclass, field

import trio

from swarmtui.plan.ops import PeerId

AUTHOR_RATE, AUTHOR_BURST = 50.0, 2_000.0
"""New ops that an author may bring in by gossip, a second and at once. An agent says a few a minute; a plan that is
pushed to a newcomer comes as a burst. What is refused comes by repair, at the pace of the one who asks."""
STRANGERS_RATE, STRANGERS_BURST = 200.0, 5_000.0
"""The same for all authors together whose presence isn't heard: keys cost nothing, so they share one bucket."""
ASKER_RATE, ASKER_BURST = 5.0, 60.0
"""Requests that a peer may make, a second and at once."""
_KEYS = 256


class Bucket:
    """A token bucket: `rate` a second by trio's clock, at most `burst` at once."""

    __slots__ = ("_at", "_burst", "_left", "_rate")

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = burst, math.inf

    def take(self, cost: float = 1.0) -> bool:
        """Take tokens, if there are enough."""
        if not self.has(cost):
            return False
        self._left -= cost
        return True

    def has(self, cost: float = 1.0) -> bool:
        """Whether there are enough tokens."""
        now = trio.current_time()
        self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._rate)
        self._at = now
        return self._left >= cost


class Buckets:
    """A bucket per peer, for the latest peers only."""

    def __init__(self, rate: float, burst: float, most: int = 1_024) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._buckets: OrderedDict[PeerId, Bucket] = OrderedDict()

    def of(self, peer: PeerId) -> Bucket:
        bucket = self._buckets.get(peer)
        if bucket is None:
            bucket = self._buckets[peer] = Bucket(self._rate, self._burst)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(peer)
        return bucket


class Tally(Counter[str]):
    """Counts by a key that others may choose: a bounded number of keys, the rest under 'other'."""

    def count(self, key: str) -> None:
        key = key[:80]
        if key not in self and len(self) >= _KEYS:
            key = "other"
        self[key] += 1


@dataclass
class Counters:
    """What a peer did and met since it started."""

    frames_in: int = 0
    frames_out: int = 0
    bytes_out: int = 0
    ops_in: int = 0
    """Ops that were new here."""
    ops_out: int = 0
    """Own ops published."""
    duplicates: int = 0
    """Ops that were known already."""
    republished: int = 0
    """Others' ops told again, to newcomers and by the carousel."""
    repaired: int = 0
    """Ops that came by repair."""
    presences_in: int = 0
    presences_out: int = 0
    swaps: int = 0
    """Repairs begun."""
    failed_asks: int = 0
    answered: int = 0
    errors: int = 0
    """Exceptions that were caught where none was foreseen; each is in the log."""
    held: int = 0
    """Ops that were ahead of the clock when they came."""
    invalid: Tally = field(default_factory=Tally)
    """Invalid frames, ops and presences by reason."""
    invalid_by_author: Tally = field(default_factory=Tally)
    """Invalid ops by the author that they claim, which is not proved."""
    invalid_by_neighbour: Tally = field(default_factory=Tally)
    refused: Tally = field(default_factory=Tally)
    """Valid ops and presences that weren't taken, by reason."""
    refused_by_author: Tally = field(default_factory=Tally)
