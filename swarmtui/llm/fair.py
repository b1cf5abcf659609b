"""Who goes next: the most urgent first, and among equals the agent that had the fewest turns lately."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Requests that wait for a slot. An agent with many requests delays others by one of its own at most."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, str, T]] = []
        self._turns: dict[str, int] = {}
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def priority(self) -> int:
        """The highest of those that wait; -1 if nobody does."""
        return max((-each[0] for each in self._waiting), default=-1)

    def push(self, agent: str, priority: int, item: T) -> None:
        """Add a request. An agent that comes new (or back) starts level with the least served of those that wait."""
        self._pushed += 1
        waiting = {each[2] for each in self._waiting}
        if agent not in waiting:
            level = min((self._turns.get(each, 0) for each in waiting), default=min(self._turns.values(), default=0))
            self._turns[agent] = max(self._turns.get(agent, 0), level)
        self._waiting.append((-priority, self._pushed, agent, item))

    def pop(self) -> T:
        """Take the next request. IndexError if there's none."""
        if not self._waiting:
            raise IndexError("nobody waits")
        chosen = min(self._waiting, key=lambda each: (each[0], self._turns[each[2]], each[1]))
        self._waiting.remove(chosen)
        self._turns[chosen[2]] += 1
        if len(self._turns) > 1_000:
            waiting = {each[2] for each in self._waiting} | {chosen[2]}
            self._turns = {agent: turns for agent, turns in self._turns.items() if agent in waiting}
        return chosen[3]

    def remove(self, item: T) -> bool:
        """Take a request out that is wanted no more; False if it isn't here."""
        for each in self._waiting:
            if each[3] is item:
                self._waiting.remove(each)
                return True
        return False
