"""The scripted model of one simulated agent, which can be slow and fail for a while."""

from __future__ import annotations

import random
from collections.abc import Callable

import trio

from swarmtui.llm.model import ModelError, Reply, Request
from swarmtui.llm.scripted import CHARS_PER_TOKEN, ScriptedModel

PIECES = 3
STEP_S = 4.0
LONGEST_S = 20.0
"""An answer takes no longer when the model isn't slow: longer merges would only stretch the run."""


class SimulatedModel(ScriptedModel):
    """Writes in a few pieces, as each costs a turn of the scheduler.

    Args:
        seed: changes every answer.
        rng: chance of failing.
        slow: makes every answer so many times slower.
        fails: share of answers that fail.
    """

    def __init__(self, seed: int, rng: random.Random, tokens_per_second: float, slow: float, fails: float) -> None:
        super().__init__(seed, tokens_per_second=tokens_per_second)
        self._rng = rng
        self.slow = slow
        self.fails = fails

    def recover(self) -> None:
        """Be neither slow nor failing from now on."""
        self.slow, self.fails = 1.0, 0.0

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        reply = await super().generate(request, on_text)
        if self._rng.random() < self.fails:
            raise ModelError("simulated failure")
        return reply

    async def _write(self, text: str, on_text: Callable[[str], None] | None) -> None:
        size = max(1, -(-len(text) // PIECES))
        for at in range(0, len(text), size):
            await self._take_time(min(size / CHARS_PER_TOKEN / self._pace, LONGEST_S / PIECES))
            if on_text is not None:
                on_text(text[at : at + size])

    async def _take_time(self, seconds: float) -> None:
        """Sleep for as long as the work takes; a recovery in the middle of it counts at once."""
        while seconds > 0:
            step = min(seconds * self.slow, STEP_S)
            seconds -= step / self.slow
            await trio.sleep(step)
