"""A draft by a small model: the sound steps of several answers, as it seldom gives a whole list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtui.llm.model import Model, ModelError, Request, Urgency

from . import drafts, judging
from .drafts import Checks
from .judge import Judge
from .settings import AgentSettings

ENOUGH = 4
"""It's asked again until so many sound steps are gathered (or the policy's most, if that is less)."""


@dataclass(slots=True, eq=False)
class _Found:
    """A step that a model gave, and how well it belongs to the task (0 to 1; 1 if that wasn't weighed)."""

    fields: dict[str, Any]
    weight: float = 1.0

    @property
    def title(self) -> str:
        return str(self.fields["title"])


class Gatherer:
    """Asks, keeps what is sound, weighs it by likelihood, asks again for more."""

    def __init__(self, model: Model, settings: AgentSettings) -> None:
        self._model = model
        self._settings = settings
        self._judge = Judge(model, settings, "specific")

    async def __call__(
        self,
        checks: Checks,
        base: list[dict[str, Any]],
        ask: Callable[[int], Request],
        write: Callable[[str], None],
    ) -> list[dict[str, Any]]:
        """Gather the steps of one draft.

        Args:
            checks: what a step must pass.
            base: the steps that are refined; empty for a fresh draft.
            ask: the n-th request.
            write: gets the text as it comes.

        Returns:
            At most as many as the policy allows, in their order; the best of the rest where too few are sound.

        Raises:
            ModelError: the model failed.
        """
        low, high = checks.fan_out
        wanted = max(low, min(ENOUGH, high))
        titles = [step["title"] for step in base]
        pool: list[_Found] = []
        for number in range(1 + self._settings.redraws):
            request = ask(number)
            if base and number == 0:
                pool = await self._weighed(checks.task, base, request.priority)
            reply = await self._model.generate(request, write)
            answer = drafts.read_steps(reply.value)[:high]
            if not checks.foreign([step["title"] for step in answer]):
                pool += await self._weighed(checks.task, answer, request.priority)
            sound = _sound(checks, pool)
            best = sorted(sound, key=lambda item: -item.weight)[:high]
            kept = [item for item in sound if item in best]
            if len(kept) >= wanted and [item.title for item in kept] != titles:
                break
        if len(kept) < low:
            rest = sorted((item for item in pool if item not in sound), key=lambda item: -item.weight)
            for item in rest:
                if not checks.faulty(item.title) and not _said(checks, item, kept):
                    kept.append(item)
        return [item.fields for item in kept[: max(low, len(best))]]

    async def _weighed(self, task: str, found: list[dict[str, Any]], urgency: int) -> list[_Found]:
        titles = [step["title"] for step in found]
        if not titles:
            return []
        try:
            gains = await self._judge.weigh(task, titles, Urgency(urgency))
        except ModelError:
            return [_Found(step) for step in found]
        weights = judging.weigh(task, titles, gains)
        return [_Found(step, weight) for step, weight in zip(found, weights, strict=True)]


def _sound(checks: Checks, pool: Sequence[_Found]) -> list[_Found]:
    """Those that belong to the task and have no fault; of two alike the weightier."""
    kept: list[_Found] = []
    for item in sorted(pool, key=lambda item: -item.weight):
        if item.weight < judging.WEAK or checks.faulty(item.title):
            continue
        if not _said(checks, item, kept):
            kept.append(item)
    return [item for item in pool if item in kept]


def _said(checks: Checks, item: _Found, kept: Sequence[_Found]) -> bool:
    return any(drafts.repeats([other.title, item.title], checks.task) for other in kept)
