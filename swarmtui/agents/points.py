"""A result by a small model: the sound points of its answers, as a list. It rambles, loops and repeats its task; what
is left without that is short and to the point."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swarmtui.llm.model import Likelihood, Model, ModelError, Request

from .prompting import fill
from .prose import items_of, says_enough, tidied
from .results import Checks
from .settings import AgentSettings
from .wording import cut, shared, words

ENOUGH = 3
"""It's asked once more if fewer points are sound."""
MOST = 5
BELONGS = 0.05
"""Mean log p per token that a point must gain from its task over a neutral one."""
ANSWERS = 2
SAID = 0.75
"""A point that shares so many words with a line of another task's result was said there."""


class Pointer:
    """Asks, keeps the sound points, asks once more where they are few."""

    def __init__(self, model: Model, settings: AgentSettings) -> None:
        self._model = model
        self._settings = settings

    async def __call__(self, checks: Checks, ask: Callable[[int], Request], write: Callable[[str], None]) -> str:
        """Make the result of a leaf.

        Args:
            checks: what a point must pass.
            ask: the n-th request.
            write: gets the text as it comes.

        Returns:
            A list, one point a line; '' if nothing was written that could stand.

        Raises:
            ModelError: the model failed.
        """
        kept: list[str] = []
        spare: list[str] = []
        for number in range(ANSWERS):
            request = ask(number)
            reply = await self._model.generate(request, write)
            items = items_of(checks.plain(reply.text), reply.cut)
            sound = [point for item in items if (point := self._sound(checks, item, kept)) is not None]
            kept += await self._relevant(checks, request, _distinct(sound, kept))
            spare += [item for item in items if item not in kept]
            if len(kept) >= ENOUGH:
                break
        if not kept:
            kept = [cut(item, 400) for item in spare[:ENOUGH]]
        return "\n".join(f"- {point}" for point in kept[:MOST])

    def _sound(self, checks: Checks, item: str, kept: Sequence[str]) -> str | None:
        """A point as it will stand, or None if it shouldn't."""
        prompts = self._settings.prompts.executor
        point = tidied(item, checks.told, prompts.links)
        if checks.idle(point):
            return None
        if not says_enough(point, kept) or len(words(point) - words(checks.told)) < 2:
            return None
        if checks.faults(point) or checks.about_another(point):
            return None
        if point.endswith(("?", "？")) or any(shared(point, line) >= SAID for line in checks.other_lines):
            return None
        return point.rstrip(" ,;")

    async def _relevant(self, checks: Checks, request: Request, points: list[str]) -> list[str]:
        """Those that are likelier after the task than after none, where the model can tell."""
        if not points:
            return []
        prompts = self._settings.prompts.executor
        values = {"goal": str(request.facts["goal"]), "title": checks.title}
        try:
            given = await self._weigh(request, fill(prompts.given_task, values), points)
            alone = await self._weigh(request, prompts.given_none, points)
        except ModelError:
            return points
        gains = [one - other for one, other in zip(given, alone, strict=True)]
        return [point for point, gain in zip(points, gains, strict=True) if gain >= BELONGS]

    async def _weigh(self, request: Request, prefix: str, points: list[str]) -> list[float]:
        return await self._model.likelihood(
            Likelihood(agent=request.agent, prefix=prefix, continuations=points, priority=request.priority)
        )


def _distinct(points: Sequence[str], kept: Sequence[str]) -> list[str]:
    found: list[str] = []
    for point in points:
        if says_enough(point, [*kept, *found]):
            found.append(point)
    return found
