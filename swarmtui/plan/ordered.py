"""Small sorted collections: a tuple while there are few entries, a list from then on.

A replica holds very many of them, most with one entry. Python's garbage collector stops looking at tuples of plain
things, but walks every list whenever it runs, and that grows with the plan.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T", bound=tuple[Any, ...])
Ordered: TypeAlias = tuple[T, ...] | list[T]
"""Entries in order. Change it by :func:`put`, and keep what that returns."""

_FEW = 6


def put(ordered: Ordered[T], entry: T, on: bool) -> Ordered[T]:
    """Add an entry, or take out one that's there; the collection to go on with."""
    if isinstance(ordered, list):
        if on:
            insort(ordered, entry)
        else:
            del ordered[bisect_left(ordered, entry)]
        return ordered
    at = bisect_left(ordered, entry) if ordered else 0
    if not on:
        return (*ordered[:at], *ordered[at + 1 :])
    longer = (*ordered[:at], entry, *ordered[at:])
    return longer if len(longer) <= _FEW else list(longer)
