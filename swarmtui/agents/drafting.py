"""Writing a draft with a model: asking, checking, asking again (docs/prompts.md says what a model is asked)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from swarmtui.llm.model import Model, Request, Urgency
from swarmtui.plan.ops import Proposal
from swarmtui.plan.state import Draft, Plan, Task

from . import context, drafts
from .drafts import Checks
from .gathering import Gatherer
from .prompting import Angle, Example, fill, is_small, listed, split_schema
from .ranking import standing, verdicts
from .settings import AgentSettings, room_of
from .wording import cut, one_line

TOKENS_A_STEP = 60
"""A small model's title and detail fill their form with so many."""
SHOWN = 3
"""Angles that the standing instructions show an example of."""


@dataclass(frozen=True, slots=True)
class Order:
    """A draft to write."""

    plan: Plan
    task: Task
    angle: Angle
    base: Draft | None = None
    """The draft to refine."""


class Drafter:
    """One decomposer's way to a draft."""

    def __init__(self, model: Model, settings: AgentSettings) -> None:
        self._model = model
        self._settings = settings
        self._gather = Gatherer(model, settings)

    async def __call__(self, order: Order, write: Callable[[str], None], seed: Callable[[], int]) -> Proposal:
        """Write a draft. Whatever the model answers, the proposal is within the limits and the policy.

        Raises:
            ModelError: the model failed.
        """
        checks = Checks.of(order.plan, order.task, order.angle, self._settings.prompts)
        if is_small(self._model.name):
            base = [{"title": step.title, "detail": step.detail} for step in order.base.steps] if order.base else []

            def ask(number: int) -> Request:
                return self._small_request(order, checks, number, seed())

            found = await self._gather(checks, base, ask, write)
            rationale = ""
            if len(found) < checks.fan_out[0] or self._unchanged(order, found):
                found, rationale = self._mended(order, checks, found)
        else:
            found, rationale = await self._drawn(order, checks, write, seed)
        policy, task = order.plan.policy, order.task
        steps = drafts.to_steps(found, policy, task.title, task.depth, self._settings.prompts.decomposer)
        base_id = order.base.op.id if order.base else b""
        return Proposal(task=task.id, steps=steps, rationale=rationale, angle=order.angle.name, base=base_id)

    async def _drawn(
        self, order: Order, checks: Checks, write: Callable[[str], None], seed: Callable[[], int]
    ) -> tuple[list[dict[str, Any]], str]:
        """The first answer without a fault; after the last redraw the one with the fewest, mended."""
        best: list[dict[str, Any]] = []
        fewest, wrong = 1_000, list[str]()
        for _ in range(1 + self._settings.redraws):
            reply = await self._model.generate(self._request(order, checks, wrong, seed()), write)
            found = drafts.read_steps(reply.value)[: checks.fan_out[1]]
            wrong = checks.faults([step["title"] for step in found])
            if self._unchanged(order, found):
                wrong.append("nothing was refined")
            if len(wrong) < fewest:
                best, fewest = found, len(wrong)
            if not wrong:
                return found, ""
        return self._mended(order, checks, best)

    @staticmethod
    def _unchanged(order: Order, found: list[dict[str, Any]]) -> bool:
        return order.base is not None and [step["title"] for step in found] == [s.title for s in order.base.steps]

    def _mended(self, order: Order, checks: Checks, found: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
        usual = checks.language.usual or order.angle.usual or self._settings.prompts.angles[0].usual
        steps, added = drafts.mend(found, checks.task, checks.fan_out, checks.shown, checks.planned, usual)
        more = f" {added} usual steps were added." if added else ""
        return steps, f"Steps with faults were left out.{more}"

    # Requests

    def _request(self, order: Order, checks: Checks, wrong: list[str], seed: int) -> Request:
        plan, base = order.plan, order.base
        prompts = self._settings.prompts.decomposer
        high = plan.policy.fan_out[1]
        values = self._values(order, checks)
        if base is not None:
            votes = verdicts(plan.policy, base)
            values["steps"] = listed(step.title for step in base.steps)
            values["critiques"] = cut(" ".join(one_line(vote.critique) for vote in votes if vote.critique), 1_000)
        parts = [fill(prompts.refine if base else prompts.draft, values)]
        if wrong:
            parts.append(fill(prompts.wrong, values | {"faults": "; ".join(wrong[:4])}))
        schema = split_schema(plan.policy.fan_out, plan.policy.skills, full=True)
        return self._make(order, self._system(), "\n".join(parts), schema, 140 * high + 40, seed)

    def _system(self) -> str:
        """The standing instructions: the same for all angles, so that rivals share what is read of them."""
        prompts = self._settings.prompts
        split = ((e, angle.hint) for angle in prompts.angles[:SHOWN] for e in angle.examples[:1])
        examples = "\n\n".join(_shown(example, f" (split {hint})") for example, hint in split)
        return fill(prompts.decomposer.system, {"examples": examples}).strip()

    def _small_request(self, order: Order, checks: Checks, number: int, seed: int) -> Request:
        prompts = self._settings.prompts.decomposer
        high = order.plan.policy.fan_out[1]
        values = self._values(order, checks)
        templates = [checks.language.small] if checks.language.small else list(prompts.small)
        template = templates[number % len(templates)]
        if order.base is not None and number == 0 and not checks.language.small:
            template = prompts.small_refine
            values["steps"] = listed(step.title for step in order.base.steps)
        schema = split_schema(order.plan.policy.fan_out, order.plan.policy.skills, full=False)
        return self._make(order, prompts.small_system, fill(template, values), schema, TOKENS_A_STEP * high + 20, seed)

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
            priority=Urgency.RIVAL if standing(task) else Urgency.DRAFT,
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

    def _values(self, order: Order, checks: Checks) -> dict[str, str]:
        plan, task, angle = order.plan, order.task, order.angle
        room = room_of(self._model)
        low, high = plan.policy.fan_out
        detail = task.step.detail or (plan.goal.detail if task.parent is None else "")
        return context.places(plan, task, room) | {
            "detail": cut(one_line(detail), room // 4),
            "low": str(low),
            "high": str(high),
            "hint": angle.hint,
            "language": checks.language.ask,
            "examples": "\n\n".join(_shown(example) for example in angle.examples[:1]),
        }


def _shown(example: Example, how: str = "") -> str:
    return f"Task: {example.task}{how}\nSteps:\n{listed(example.steps)}"
