"""Writing a draft with a model: asking, checking, asking again; with a small model, gathering the best of several."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtui.llm.model import Model, ModelError, Request, Urgency
from swarmtui.plan.ops import Proposal
from swarmtui.plan.state import Draft, Plan, Task

from . import context, drafts, judging
from .judge import Judge
from .prompting import Angle, fill, is_small, listed, split_schema
from .ranking import standing, verdicts
from .settings import AgentSettings, room_of
from .wording import cut, one_line

ENOUGH = 4
"""A small model is asked again until so many sound steps are gathered (or the policy's most, if that is less)."""


@dataclass(frozen=True, slots=True)
class Order:
    """A draft to write."""

    plan: Plan
    task: Task
    angle: Angle
    base: Draft | None = None
    """The draft to refine."""


@dataclass(slots=True)
class _Found:
    """A step that a model gave, and how well it belongs to the task (0 to 1; 1 if that wasn't weighed)."""

    fields: dict[str, Any]
    weight: float = 1.0

    @property
    def title(self) -> str:
        return str(self.fields["title"])


class Drafter:
    """One decomposer's way to a draft."""

    def __init__(self, model: Model, settings: AgentSettings) -> None:
        self._model = model
        self._settings = settings
        self._judge = Judge(model, settings, "specific")

    async def __call__(self, order: Order, write: Callable[[str], None], seed: Callable[[], int]) -> Proposal:
        """Write a draft. Whatever the model answers, the proposal is within the limits and the policy.

        Raises:
            ModelError: the model failed.
        """
        small = is_small(self._model.name)
        found, rationale = await (self._gathered if small else self._drawn)(order, write, seed)
        policy, task = order.plan.policy, order.task
        steps = drafts.to_steps(found, policy, task.depth, self._settings.prompts.decomposer.last_words)
        base = order.base.op.id if order.base else b""
        return Proposal(task=task.id, steps=steps, rationale=rationale, angle=order.angle.name, base=base)

    async def _drawn(
        self, order: Order, write: Callable[[str], None], seed: Callable[[], int]
    ) -> tuple[list[dict[str, Any]], str]:
        """The first answer without a fault; after the last redraw the one with the fewest, mended."""
        low, high = order.plan.policy.fan_out
        shown, planned = self._shown(order), _planned(order)
        best: list[dict[str, Any]] = []
        fewest = 1_000
        for _ in range(1 + self._settings.redraws):
            reply = await self._model.generate(self._request(order, seed()), write)
            found = drafts.read_steps(reply.value)[:high]
            titles = [step["title"] for step in found]
            wrong = drafts.faults(titles, order.task.title, low, shown, planned)
            if order.base is not None and titles == [step.title for step in order.base.steps]:
                wrong.append("nothing was refined")
            if len(wrong) < fewest:
                best, fewest = found, len(wrong)
            if not wrong:
                return found, ""
        return self._mended(order, best)

    async def _gathered(
        self, order: Order, write: Callable[[str], None], seed: Callable[[], int]
    ) -> tuple[list[dict[str, Any]], str]:
        """The sound steps of several answers, weighed by likelihood: a small model seldom gives a whole list."""
        low, high = order.plan.policy.fan_out
        wanted = max(low, min(ENOUGH, high))
        pool: list[_Found] = []
        if order.base is not None:
            pool = await self._weighed(order, [{"title": step.title} for step in order.base.steps])
        for number in range(1 + self._settings.redraws):
            reply = await self._model.generate(self._small_request(order, number, seed()), write)
            pool += await self._weighed(order, drafts.read_steps(reply.value)[:high])
            sound = self._sound(order, pool)
            if len(sound) >= wanted and (order.base is None or _differs(order.base, sound[:high])):
                break
        best = sorted(sound, key=lambda item: -item.weight)[:high]
        kept = [item.fields for item in sound if item in best]
        if len(kept) >= low:
            return kept, ""
        rest = sorted((item for item in pool if item not in sound), key=lambda item: -item.weight)
        return self._mended(order, [*kept, *(item.fields for item in rest)][: max(low, len(kept))])

    async def _weighed(self, order: Order, found: list[dict[str, Any]]) -> list[_Found]:
        titles = [step["title"] for step in found]
        if not titles:
            return []
        try:
            weights = judging.weigh(
                order.task.title, titles, await self._judge.weigh(order.task.title, titles, _urgency(order))
            )
        except ModelError:
            weights = [1.0] * len(titles)
        return [_Found(step, weight) for step, weight in zip(found, weights, strict=True)]

    def _sound(self, order: Order, pool: Sequence[_Found]) -> list[_Found]:
        """Those that belong to the task and have no fault; of two alike the weightier."""
        shown, planned, task = self._shown(order), _planned(order), order.task.title
        kept: list[_Found] = []
        for item in sorted(pool, key=lambda item: -item.weight):
            if item.weight < judging.WEAK or drafts.faults([item.title], task, 1, shown, planned):
                continue
            if not any(drafts.repeats([other.title, item.title], task) for other in kept):
                kept.append(item)
        return [item for item in pool if item in kept]

    def _mended(self, order: Order, found: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
        usual = order.angle.usual or self._settings.prompts.angles[0].usual
        fan_out = order.plan.policy.fan_out
        steps, added = drafts.mend(found, order.task.title, fan_out, self._shown(order), _planned(order), usual)
        more = f" {added} usual steps were added." if added else ""
        return steps, f"Steps with faults were left out.{more}"

    def _shown(self, order: Order) -> list[str]:
        """Steps of all examples: a refinement may carry one over from another angle's draft."""
        angles = [order.angle, *self._settings.prompts.angles]
        return [step for angle in angles for example in angle.examples for step in example.steps]

    # Requests

    def _request(self, order: Order, seed: int) -> Request:
        plan, base = order.plan, order.base
        prompts = self._settings.prompts.decomposer
        high = plan.policy.fan_out[1]
        values = self._values(order)
        if base is not None:
            votes = verdicts(plan.policy, base)
            values["steps"] = listed(step.title for step in base.steps)
            values["critiques"] = cut(" ".join(one_line(vote.critique) for vote in votes if vote.critique), 1_000)
        prompt = "\n".join([fill(prompts.refine if base else prompts.draft, values), prompts.full.strip()])
        schema = split_schema(plan.policy.fan_out, plan.policy.skills, full=True)
        return self._make(order, prompts.system.strip(), prompt, schema, 140 * high + 40, seed)

    def _small_request(self, order: Order, number: int, seed: int) -> Request:
        prompts = self._settings.prompts.decomposer
        template = prompts.small[number % len(prompts.small)]
        plan = order.plan
        schema = split_schema(plan.policy.fan_out, plan.policy.skills, full=False)
        prompt = fill(template, self._values(order))
        return self._make(order, prompts.small_system, prompt, schema, 45 * plan.policy.fan_out[1] + 40, seed)

    def _make(
        self, order: Order, system: str, prompt: str, schema: dict[str, Any], max_tokens: int, seed: int
    ) -> Request:
        plan, task, base = order.plan, order.task, order.base
        return Request(
            agent=self._settings.name,
            purpose="draft",
            subject=task.title,
            system=system,
            prompt=prompt,
            schema=schema,
            max_tokens=max_tokens,
            temperature=0.6,
            seed=seed,
            priority=_urgency(order),
            facts={
                "title": task.title,
                "goal": plan.goal.title,
                "angle": order.angle.name,
                "fan_out": list(plan.policy.fan_out),
                "depth": task.depth,
                "max_depth": plan.policy.max_depth,
                "skills": list(plan.policy.skills),
                "path": [item.title for item in context.ancestors(plan, task)],
                "steps": [step.title for step in base.steps] if base else [],
            },
        )

    def _values(self, order: Order) -> dict[str, str]:
        plan, task, angle = order.plan, order.task, order.angle
        room = self._settings.context_chars or room_of(self._model)
        above = context.ancestors(plan, task)
        low, high = plan.policy.fan_out
        return {
            "goal": one_line(plan.goal.title) if above else "",
            "path": " › ".join(one_line(item.title) for item in above[1:]),
            "siblings": "; ".join(one_line(item.title) for item in context.siblings(plan, task)),
            "notes": cut(" ".join(one_line(note) for note in context.notes(plan, task)), room // 6),
            "detail": cut(one_line(task.step.detail), room // 4),
            "title": one_line(task.title),
            "low": str(low),
            "high": str(high),
            "hint": angle.hint,
            "examples": "\n\n".join(f"Task: {e.task}\nSteps:\n{listed(e.steps)}" for e in angle.examples[:1]),
            "examples_json": "\n\n".join(
                f"Task: {e.task}\n{json.dumps({'steps': e.steps}, ensure_ascii=False)}" for e in angle.examples
            ),
        }


def _urgency(order: Order) -> Urgency:
    return Urgency.RIVAL if standing(order.task) else Urgency.DRAFT


def _planned(order: Order) -> list[str]:
    plan, task = order.plan, order.task
    return [other.title for other in [*context.siblings(plan, task), *context.ancestors(plan, task)]]


def _differs(base: Draft, found: Sequence[_Found]) -> bool:
    return [item.title for item in found] != [step.title for step in base.steps]
