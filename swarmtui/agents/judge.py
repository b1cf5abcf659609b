"""Asking a model about a draft: by likelihood where it can be read so, else by written marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, Literal
from weakref import WeakKeyDictionary

from swarmtui.llm.model import Likelihood, Model, ModelError, Request, Urgency
from swarmtui.plan.ops import Marks
from swarmtui.plan.state import Draft, Plan, Task

from . import judging
from .judging import Emphasis, Gains, Verdict
from .prompting import Neutral, critique_schema, fill, is_small, listed, marks_schema
from .scale import LEAST_TRUST, UNKNOWN, Scale, measure
from .settings import AgentSettings
from .tongues import is_foreign
from .wording import cut, one_line

PATIENCE_WITH_LIKELIHOOD = 2
"""Failures in a row after which a model isn't asked for likelihoods any more, if it could write marks all the same."""
LEAST_KIN, MOST_KIN = 3, 5
"""Steps of lists that are searched for paraphrased repeats: fewer leave nothing to compare with; among the many pairs
of longer ones some always look like one, in good lists as in others."""
ADVICE_TOKENS = 80
ADVICE_CHARACTERS = 240

_scales: WeakKeyDictionary[Model, dict[tuple[str, str, str], Scale]] = WeakKeyDictionary()
"""Model → (its name, prefix, language) → its scale. Facts about a model, which all its judges share."""


def nobody(text: str) -> None:
    """Hears what a model writes when nobody else wants to."""


class Judge:
    """One scorer's way to a verdict.

    Args:
        model: asked.
        settings: with the prompts.
        emphasis: what this scorer looks at most; None: all alike.
    """

    def __init__(self, model: Model, settings: AgentSettings, emphasis: Emphasis | None) -> None:
        self._model = model
        self._settings = settings
        self.emphasis: Emphasis | None = emphasis
        """May be changed between two verdicts."""
        self._refused = 0
        self._asked = model.name

    async def __call__(self, plan: Plan, task: Task, draft: Draft, write: Callable[[str], None], seed: int) -> Verdict:
        """Judge a draft. Cancellation leaves nothing behind.

        Raises:
            ModelError: the model can neither be read nor asked now.
        """
        steps = [one_line(step.title) for step in draft.steps]
        title, goal = one_line(task.title), one_line(plan.goal.title)
        urgency = Urgency.VOTE if draft.votes else Urgency.FIRST_VOTE
        if self._model.name != self._asked:
            # The agent was given another model: what the old one couldn't, this one may.
            self._asked, self._refused = self._model.name, 0
        if self._refused < PATIENCE_WITH_LIKELIHOOD:
            try:
                verdict = await self.read(title, steps, enough(plan), urgency, plan.policy.pass_mark)
            except ModelError:
                pass
            else:
                self._refused = 0
                if verdict.marks.mean >= plan.policy.pass_mark or is_small(self._model.name):
                    return verdict
                return await self._advised(title, steps, verdict, urgency, write, seed)
        _, checked = await self.ask(title, steps, write, seed, goal, enough(plan), urgency, plan.policy.pass_mark)
        # A model that is gone for a while can't write marks either: that tells nothing of what it can.
        self._refused += 1
        return checked

    async def read(
        self,
        title: str,
        steps: Sequence[str],
        enough: int = 3,
        urgency: Urgency = Urgency.VOTE,
        pass_mark: float = judging.MIDDLE,
    ) -> Verdict:
        """Judge by likelihood, without generating.

        Args:
            title: the task's, one line.
            steps: their titles, one line each.
            enough: fewest steps of a complete list.
            urgency: what waits for it.
            pass_mark: what can't let a list reach it isn't asked: neither how likely it makes the task, nor whether it
                repeats itself in other words.

        Raises:
            ModelError: the model failed, or knows no likelihoods.
        """

        def judged(gains: Gains) -> Verdict:
            return judging.by_likelihood(title, steps, gains, self.emphasis, enough, pass_mark)

        gains = await self.weigh(title, steps, urgency)
        if judged(replace(gains, cover=judging.MOST_COVER)).marks.mean < pass_mark:
            return judged(gains)
        gains = replace(gains, cover=await self._cover(title, steps, urgency))
        verdict = judged(gains)
        if (
            verdict.marks.mean < pass_mark
            or gains.scale.trust <= LEAST_TRUST
            or not LEAST_KIN <= len(steps) <= MOST_KIN
        ):
            return verdict
        return judged(replace(gains, steps_given_step=await self._pairs(steps, urgency)))

    async def weigh(self, title: str, steps: Sequence[str], urgency: Urgency = Urgency.VOTE) -> Gains:
        """Take the likelihoods that weighing the steps needs (`judging.weigh`), each by itself.

        Raises:
            ModelError: the model failed, or knows no likelihoods.
        """
        prompts = self._settings.prompts
        given = await self._after(title, steps, urgency)
        language = prompts.language_of_task(title, steps)
        known = prompts.scorer.neutral
        own = next((each for each in known if each.language == language.name), None)
        alone = [await self._after(task, steps, urgency) for task in (own or known[0]).steps]
        return Gains(
            steps_given_goal=tuple(given),
            steps_alone=tuple(map(fmean, zip(*alone, strict=True))),
            scale=UNKNOWN if own is None else await self._scale(own, urgency),
            strange=frozenset(i for i, step in enumerate(steps) if is_foreign(step, language, prompts.languages)),
        )

    async def _cover(self, title: str, steps: Sequence[str], urgency: Urgency) -> float:
        """How much likelier the task is after the list than after none, per token."""
        prompts = self._settings.prompts.scorer
        (given,) = await self._ask(urgency, fill(prompts.given_steps, {"steps": listed(steps)}), [title])
        (alone,) = await self._ask(urgency, prompts.given_no_steps, [title])
        return given - alone

    async def _pairs(self, steps: Sequence[str], urgency: Urgency) -> dict[tuple[int, int], float]:
        """Weigh each step as another way to say each other one."""
        prompt = self._settings.prompts.scorer.given_step
        after: dict[tuple[int, int], float] = {}
        for i, step in enumerate(steps):
            others = [j for j in range(len(steps)) if j != i]
            found = await self._ask(urgency, fill(prompt, {"step": step}), [steps[j] for j in others])
            after |= {(i, j): value for j, value in zip(others, found, strict=True)}
        return after

    async def _scale(self, language: Neutral, urgency: Urgency) -> Scale:
        """How strongly the model speaks in a language: measured at the first draft in it."""
        known = _scales.setdefault(self._model, {})
        # By name, too: which model an agent's is may change.
        key = (self._model.name, self._settings.prompts.scorer.given_goal, language.language)
        if key not in known:
            steps = [step for its in language.steps.values() for step in its]
            weighed = {
                task: dict(zip(steps, await self._after(task, steps, urgency), strict=True)) for task in language.steps
            }
            known[key] = measure(language.steps, weighed)
        return known[key]

    async def _after(self, task: str, steps: Sequence[str], urgency: Urgency) -> list[float]:
        return await self._ask(urgency, fill(self._settings.prompts.scorer.given_goal, {"title": task}), steps)

    async def _ask(self, urgency: Urgency, prefix: str, texts: Sequence[str]) -> list[float]:
        found = await self._model.likelihood(
            Likelihood(agent=self._settings.name, prefix=prefix, continuations=texts, priority=urgency)
        )
        if len(found) != len(texts):
            raise ModelError(f"the model weighed {len(found)} of {len(texts)} texts")
        return found

    async def ask(
        self,
        title: str,
        steps: Sequence[str],
        write: Callable[[str], None] = nobody,
        seed: int = 0,
        goal: str = "",
        enough: int = 3,
        urgency: Urgency = Urgency.VOTE,
        pass_mark: float = judging.MIDDLE,
    ) -> tuple[Verdict, Verdict]:
        """Let the model write marks.

        Args:
            title, steps, enough, urgency: as for `read`.
            write: hears the answer as it's written.
            seed: of the answer.
            goal: the plan's; not told again if it's the task itself.
            pass_mark: who doesn't reach it is told why.

        Returns:
            The marks as they were written, and corrected by what can be seen plainly (small models write any number),
            with the emphasis.

        Raises:
            ModelError: the model failed.
        """
        values = {
            "goal": goal if goal != title else "",
            "title": title,
            "steps": cut(listed(steps), 1_800),
            "emphasis": self.emphasis or "all three alike",
        }
        facts = {"title": title, "goal": goal or title, "steps": list(steps), "emphasis": self.emphasis or ""}
        value = await self._answer("marks", values, facts, marks_schema(), 160, urgency, write, seed)
        marks = Marks(**{name: _mark(value.get(name)) for name in ("specific", "distinct", "complete")})
        said = one_line(str(value.get("critique", "")))
        return Verdict(marks, said), judging.by_word(title, steps, marks, said, self.emphasis, enough, pass_mark)

    async def _advised(
        self,
        title: str,
        steps: Sequence[str],
        verdict: Verdict,
        urgency: Urgency,
        write: Callable[[str], None],
        seed: int,
    ) -> Verdict:
        """The verdict with a sentence of the model's own on how to do better; without, if it fails."""
        values = {"title": title, "steps": cut(listed(steps), 1_800), "found": verdict.critique}
        facts = {"title": title, "steps": list(steps)}
        try:
            value = await self._answer(
                "critique", values, facts, critique_schema(), ADVICE_TOKENS, urgency, write, seed
            )
        except ModelError:
            return verdict
        said = cut(one_line(str(value.get("critique", ""))), ADVICE_CHARACTERS)
        return Verdict(verdict.marks, " ".join(part for part in (verdict.critique, said) if part))

    async def _answer(
        self,
        template: Literal["marks", "critique"],
        values: Mapping[str, str],
        facts: dict[str, Any],
        schema: dict[str, Any],
        most: int,
        urgency: Urgency,
        write: Callable[[str], None],
        seed: int,
    ) -> dict[str, Any]:
        prompts = self._settings.prompts.scorer
        reply = await self._model.generate(
            Request(
                agent=self._settings.name,
                purpose="judge",
                subject=values["title"],
                system=prompts.system.strip(),
                prompt=fill(getattr(prompts, template), values),
                schema=schema,
                max_tokens=most,
                temperature=0.2,
                seed=seed,
                priority=urgency,
                facts=facts,
            ),
            write,
        )
        return reply.value if isinstance(reply.value, dict) else {}


def enough(plan: Plan) -> int:
    """Fewest steps of a complete list: three, or what the policy allows."""
    return min(3, plan.policy.fan_out[1])


def _mark(value: object) -> int:
    return max(0, min(100, value)) if isinstance(value, int) else 50
