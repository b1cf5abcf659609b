"""Asking a model about a draft: by likelihood where it can be read so, else by written marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from swarmtui.llm.model import Likelihood, Model, ModelError, Request, Urgency
from swarmtui.plan.ops import Marks
from swarmtui.plan.state import Draft, Plan, Task

from . import judging
from .judging import Emphasis, Gains, Verdict
from .prompting import Neutral, fill, listed, marks_schema
from .settings import AgentSettings
from .wording import cut, one_line

PATIENCE_WITH_LIKELIHOOD = 2
"""Failures after which a model isn't asked for likelihoods any more."""


class Judge:
    """One scorer's way to a verdict."""

    def __init__(self, model: Model, settings: AgentSettings, emphasis: Emphasis) -> None:
        self._model = model
        self._settings = settings
        self._emphasis: Emphasis = emphasis
        self._refused = 0

    async def __call__(self, plan: Plan, task: Task, draft: Draft, write: Callable[[str], None], seed: int) -> Verdict:
        """Judge a draft. Cancellation leaves nothing behind.

        Raises:
            ModelError: the model can neither be read nor asked now.
        """
        steps = [one_line(step.title) for step in draft.steps]
        title = one_line(task.title)
        urgency = Urgency.VOTE if draft.votes else Urgency.FIRST_VOTE
        if self._refused < PATIENCE_WITH_LIKELIHOOD:
            try:
                gains = await self.weigh(title, steps, urgency)
            except ModelError:
                self._refused += 1
            else:
                self._refused = 0
                return judging.by_likelihood(title, steps, gains, self._emphasis, enough(plan))
        return await self._written(plan, task, title, steps, urgency, write, seed)

    async def weigh(self, title: str, steps: list[str], urgency: Urgency = Urgency.VOTE) -> Gains:
        """Take the likelihoods that the formula needs."""
        prompts = self._settings.prompts.scorer
        listing = listed(steps)
        ask = partial(self._ask, urgency)
        (goal_given_steps,) = await ask(fill(prompts.given_steps, {"steps": listing}), [title])
        (goal_alone,) = await ask(prompts.given_no_steps, [title])
        given = await ask(fill(prompts.given_goal, {"title": title}), steps)
        alone = [
            await ask(fill(prompts.given_goal, {"title": neutral}), steps)
            for neutral in neutral_tasks(prompts.neutral, title)
        ]
        means = tuple(sum(column) / len(column) for column in zip(*alone, strict=True))
        return Gains(goal_given_steps, goal_alone, tuple(given), means)

    async def _ask(self, urgency: Urgency, prefix: str, texts: list[str]) -> list[float]:
        found = await self._model.likelihood(
            Likelihood(agent=self._settings.name, prefix=prefix, continuations=texts, priority=urgency)
        )
        if len(found) != len(texts):
            raise ModelError(f"the model weighed {len(found)} of {len(texts)} texts")
        return found

    async def _written(
        self,
        plan: Plan,
        task: Task,
        title: str,
        steps: list[str],
        urgency: Urgency,
        write: Callable[[str], None],
        seed: int,
    ) -> Verdict:
        prompts = self._settings.prompts.scorer
        values = {
            "goal": one_line(plan.goal.title),
            "title": title,
            "steps": cut(listed(steps), 1_800),
            "emphasis": self._emphasis,
        }
        reply = await self._model.generate(
            Request(
                agent=self._settings.name,
                purpose="judge",
                subject=task.title,
                system=prompts.system.strip(),
                prompt=fill(prompts.marks, values),
                schema=marks_schema(),
                max_tokens=160,
                temperature=0.2,
                seed=seed,
                priority=urgency,
                facts={"title": title, "goal": plan.goal.title, "steps": steps, "emphasis": self._emphasis},
            ),
            write,
        )
        value = reply.value if isinstance(reply.value, dict) else {}
        marks = Marks(**{name: _mark(value.get(name)) for name in ("specific", "distinct", "complete")})
        return judging.by_word(
            title, steps, marks, one_line(str(value.get("critique", ""))), self._emphasis, enough(plan)
        )


def enough(plan: Plan) -> int:
    """Fewest steps of a complete list: three, or what the policy allows."""
    return min(3, plan.policy.fan_out[1])


def neutral_tasks(neutral: Sequence[Neutral], title: str) -> Sequence[str]:
    """Tasks to compare with, in the title's language where it can be told by its letters or its little words.

    In a foreign language, any text of the title's language would seem likely after the title.
    """
    little = set(title.casefold().replace("'", " ").replace("’", " ").split())
    found = max(neutral, key=lambda item: (len(little & set(item.words)), any(c in title for c in item.letters)))
    known = little & set(found.words) or any(c in title for c in found.letters)
    return found.tasks if known else neutral[0].tasks


def _mark(value: object) -> int:
    return max(0, min(100, value)) if isinstance(value, int) else 50
