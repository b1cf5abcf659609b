"""Doing a leaf and merging a branch with a model: the requests, and what is made of the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from swarmtui.llm.model import Model, ModelError, Purpose, Request, Urgency
from swarmtui.plan.ops import MAX_OUTPUT
from swarmtui.plan.state import Plan, Task

from . import context, results
from .digest import digest
from .points import Pointer
from .prompting import fill, is_small, sections
from .results import Checks, append, finish, left_out
from .settings import AgentSettings, room_of
from .wording import cut, one_line

SMALL_TOKENS = 160
"""A small model loses the thread soon: it's cut short rather."""
SMALL_TEMPERATURE = 0.4
"""It invents less; a second answer has another seed."""
TRIES = 2
"""An answer with a fault is asked for once more."""


class Worker:
    """Turns a task into text."""

    def __init__(self, model: Model, settings: AgentSettings) -> None:
        self._model = model
        self._settings = settings
        self._prompts = settings.prompts.executor

    @property
    def _small(self) -> bool:
        return is_small(self._model.name)

    async def __call__(self, plan: Plan, task: Task, write: Callable[[str], None], seed: int, tries: int) -> str:
        """Do a leaf or merge a branch.

        Args:
            plan, task: what is done.
            write: gets the text as it comes.
            seed: for the model.
            tries: how often it failed before; each time less is told, should the prompt have been too long.

        Returns:
            The result: not empty, within the limit of ops.

        Raises:
            ModelError: the model failed or wrote nothing.
        """
        room = room_of(self._model) >> tries
        text = await (self._work if task.leaf else self._merge)(plan, task, write, seed, room)
        if not text:
            raise ModelError("the model wrote nothing")
        return text

    # Leaves

    async def _work(self, plan: Plan, task: Task, write: Callable[[str], None], seed: int, room: int) -> str:
        prompts = self._prompts
        checks = Checks.of(plan, task, self._settings.prompts)
        parts = context.dependencies(plan, task)
        values = self._values(plan, task, room) | {
            "results": _quoted(parts, room),
            "skill": task.step.needs if len(plan.policy.skills) > 1 else "",
        }
        facts: dict[str, Any] = {
            "title": task.title,
            "goal": plan.goal.title,
            "path": [item.title for item in context.ancestors(plan, task)],
            "results": [title for title, _ in parts],
            "notes": context.notes(plan, task),
        }
        if self._small:
            values["results"] = results.gist(parts)
            templates = [checks.language.small_work] if checks.language.small_work else list(prompts.small_work)

            def ask(number: int) -> Request:
                prompt = fill(templates[number % len(templates)], values)
                return self._request("work", plan, task, prompt, facts, seed + number)

            return await Pointer(self._model, self._settings)(checks, ask, write)
        prompt = fill(prompts.work, values)
        best, fewest = "", 1_000
        for number in range(TRIES):
            reply = await self._model.generate(self._request("work", plan, task, prompt, facts, seed + number), write)
            text = finish(checks.plain(reply.text), reply.cut, prompts.cut_note)
            wrong = checks.faults(text)
            if text and len(wrong) < fewest:
                best, fewest = text, len(wrong)
            if not wrong:
                break
            prompt = fill(prompts.work, values) + "\n" + fill(prompts.wrong, {"faults": "; ".join(wrong)})
        return best

    # Branches

    async def _merge(self, plan: Plan, task: Task, write: Callable[[str], None], seed: int, room: int) -> str:
        prompts = self._prompts
        checks = Checks.of(plan, task, self._settings.prompts)
        parts = context.parts_of(plan, task)
        values = self._values(plan, task, room) | {
            **context.split_places(plan, task, room),
            "results": _quoted(parts, room),
            "titles": cut("; ".join(title for title, _ in parts), room // 6),
            "missing": "",
        }
        facts: dict[str, Any] = {
            "title": task.title,
            "goal": plan.goal.title,
            "children": [title for title, _ in parts],
            "results": [cut(text, 400) for _, text in parts],
        }
        if self._small:
            # It can't weave long texts together; it can say what they are, and their points follow.
            prompt = fill(checks.language.small_merge or prompts.small_merge, values)
            reply = await self._model.generate(self._request("merge", plan, task, prompt, facts, seed), write)
            return digest(checks.introduction(reply.text, reply.cut), parts, MAX_OUTPUT)
        best, lacks = "", parts
        for number in range(TRIES):
            prompt = fill(prompts.merge, values)
            reply = await self._model.generate(self._request("merge", plan, task, prompt, facts, seed + number), write)
            text = finish(checks.plain(reply.text), reply.cut, prompts.cut_note)
            missing = left_out(text, parts)
            if text and (not best or len(missing) < len(lacks)):
                best, lacks = text, missing
            if text and not missing:
                break
            values["missing"] = prompts.missing + "; ".join(title for title, _ in missing)
        if not best:
            return ""
        return append(best, lacks, MAX_OUTPUT, prompts.added_note, prompts.cut_note) if lacks else best

    # Requests

    def _tokens(self, purpose: Purpose) -> int:
        most = min(self._settings.work_tokens, SMALL_TOKENS) if self._small else self._settings.work_tokens
        if purpose == "merge":
            return most // 2 if self._small else most * 3 // 2
        return most

    def _values(self, plan: Plan, task: Task, room: int) -> dict[str, str]:
        language = self._settings.prompts.language(f"{plan.goal.title} {task.title}")
        return context.places(plan, task, room) | {
            "detail": cut(one_line(task.step.detail), room // 4),
            "language": language.ask,
        }

    def _request(
        self, purpose: Purpose, plan: Plan, task: Task, prompt: str, facts: dict[str, Any], seed: int
    ) -> Request:
        prompts = self._prompts
        return Request(
            agent=self._settings.name,
            purpose=purpose,
            subject=task.title,
            system=(prompts.small_system if self._small else prompts.system).strip(),
            prompt=prompt,
            max_tokens=self._tokens(purpose),
            temperature=SMALL_TEMPERATURE if self._small else 0.5,
            seed=seed,
            priority=Urgency.AWAITED if purpose == "merge" or context.awaited(plan, task) else Urgency.WORK,
            facts=facts,
        )


def _quoted(parts: Sequence[context.Part], room: int) -> str:
    """Results as prompts tell them, in about half of the room: alike to those who build on them and who merge them."""
    return "\n" + sections(parts, room // 2) if parts else ""
