"""How fast a model writes."""

from __future__ import annotations

from collections import deque

import trio

WINDOW_S = 5.0


class Rate:
    """Counts tokens as they're written, by trio's clock."""

    def __init__(self) -> None:
        self._written: deque[tuple[float, int]] = deque()

    def add(self, tokens: int) -> None:
        """Note that so many tokens were written now."""
        self._written.append((trio.current_time(), tokens))

    @property
    def tokens_per_second(self) -> float:
        """Tokens written per second, over the last five."""
        now = trio.current_time()
        while self._written and self._written[0][0] < now - WINDOW_S:
            self._written.popleft()
        return sum(count for _, count in self._written) / WINDOW_S
