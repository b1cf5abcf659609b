"""Remembers likelihoods, so that scorers who judge the same draft share the weighing.

A likelihood is a fact of model and texts: it has no seed. Swarms ask for each one as often as they have scorers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import trio

Key: TypeAlias = tuple[str, tuple[str, ...]]
Weigh: TypeAlias = Callable[[], Awaitable[list[float]]]

REMEMBERED = 4_096


class Memo:
    """Likelihoods by (prefix, continuations): the latest ones asked for, and those on their way."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._known: OrderedDict[Key, list[float]] = OrderedDict()
        self._coming: dict[Key, trio.Event] = {}

    async def get(self, prefix: str, continuations: Sequence[str], weigh: Weigh) -> list[float]:
        """Return what is known, wait for another who asks the same, or call `weigh`.

        If the one who weighs is cancelled or fails, the next who waits takes over.

        Raises:
            Whatever `weigh` raises, for the one who called it.
        """
        key = (prefix, tuple(continuations))
        while (found := self._known.get(key)) is None and key in self._coming:
            await self._coming[key].wait()
        if found is not None:
            self._known.move_to_end(key)
            await trio.lowlevel.checkpoint()
            return list(found)
        self._coming[key] = trio.Event()
        try:
            found = self._known[key] = await weigh()
        finally:
            self._coming.pop(key).set()
        if len(self._known) > self._size:
            self._known.popitem(last=False)
        return list(found)
