"""Brings every frame of the simulated network to its receiver.

One task for all of them, that wakes once a millisecond at most: a task and two timers for each delivery, as the memory
network has it by itself, cost more than all that's done with what is delivered.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import trio

from swarmtui.peer.network import Event

GRID_HZ = 1000


class Post:
    """What is on its way."""

    def __init__(self) -> None:
        self._bags: dict[int, list[tuple[Callable[[Event], None], Event]]] = {}
        """For each millisecond, in the order in which it was added."""
        self._moments: list[int] = []
        """A heap of their keys."""
        self._sooner = trio.Event()
        self._next = math.inf

    def add(self, at: float, receiver: Callable[[Event], None], event: Event) -> None:
        """Give something to its receiver at a time (rounded up to the next millisecond), in order within it."""
        moment = math.ceil(at * GRID_HZ)
        bag = self._bags.get(moment)
        if bag is not None:
            bag.append((receiver, event))
            return
        self._bags[moment] = [(receiver, event)]
        heapq.heappush(self._moments, moment)
        if moment / GRID_HZ < self._next:
            self._sooner.set()

    async def carry(self) -> None:
        """Hand over what is due, until cancelled."""
        while True:
            now = trio.current_time()
            while self._moments and self._moments[0] / GRID_HZ <= now:
                for receiver, event in self._bags.pop(heapq.heappop(self._moments)):
                    receiver(event)
            self._sooner = trio.Event()
            self._next = self._moments[0] / GRID_HZ if self._moments else math.inf
            with trio.move_on_at(self._next):
                await self._sooner.wait()
