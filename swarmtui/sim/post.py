"""Brings every frame of the simulated network to its receiver.

One task for all of them, that wakes once a millisecond at most: a task and two timers for each delivery, as the memory
network has it by itself, cost more than all that's done with what is delivered.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import trio

GRID_HZ = 1000


class Post:
    """What is on its way."""

    def __init__(self) -> None:
        self._bag: list[tuple[float, int, Callable[[], None]]] = []
        self._sooner = trio.Event()
        self._next = math.inf

    def add(self, at: float, order: int, hand_over: Callable[[], None]) -> None:
        """Hand something over at a time (rounded up to the next millisecond), in order within it."""
        at = math.ceil(at * GRID_HZ) / GRID_HZ
        heapq.heappush(self._bag, (at, order, hand_over))
        if at < self._next:
            self._sooner.set()

    async def carry(self) -> None:
        """Hand over what is due, until cancelled."""
        while True:
            now = trio.current_time()
            while self._bag and self._bag[0][0] <= now:
                heapq.heappop(self._bag)[2]()
            self._sooner = trio.Event()
            self._next = self._bag[0][0] if self._bag else math.inf
            with trio.move_on_at(self._next):
                await self._sooner.wait()
