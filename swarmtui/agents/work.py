"""Doing a leaf and merging a branch with a model: the requests, and what is made of the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from swarmtui.llm.model import Model, ModelError, Request, Urgency
from swarmtui.plan.ops import MAX_OUTPUT
from swarmtui.plan.state import Plan, Task

from . import context
from .prompting import fill, is_small, sections
from .settings import AgentSettings, room_of
from .wording import clean, covered, cut, one_line, to_last_sentence, without_loops, words

REPRESENTED = 0.3
"""A part is in the merged text if so much of its title's words, or of its first sentence's, is there."""
APPENDED_CHARACTERS = 600
SMALL_TOKENS = 160
"""At most so much of a part that the merged text left out is put after it."""


def finish(text: str, was_cut: bool, note: str, limit: int = MAX_OUTPUT) -> str:
    """A model's answer as a result: clean, without loops, within the limit; cut at a sentence, which `note` says."""
    text = without_loops(clean(text))
    if was_cut:
        text = to_last_sentence(text)
    room = limit - len(note) - 2
    if len(text) > room:
        text, was_cut = cut(text, room), True
    return f"{text}\n\n{note}" if was_cut and text else text


def left_out(text: str, parts: Sequence[context.Part]) -> list[context.Part]:
    """The parts of which a merged text shows no trace."""
    return [part for part in parts if not represented(text, part)]


def represented(text: str, part: context.Part) -> bool:
    """Whether a merged text tells of a part: by its title's words, or by those of its result that matter most."""
    title, result = part
    name = title.rsplit("›", 1)[-1]
    if covered(name, text) >= 2 / 3:
        return True
    telling = sorted(words(result), key=lambda word: (-len(word), word))[:12]
    there = words(text)
    return bool(telling) and sum(word in there for word in telling) / len(telling) >= REPRESENTED


def append(text: str, parts: Sequence[context.Part], limit: int) -> str:
    """The text, followed by each part that it left out, shortened."""
    room = min(APPENDED_CHARACTERS, max(80, (limit - len(text)) // max(1, len(parts)) - 220))
    added = [f"{one_line(title)}: {cut(one_line(result), room)}" for title, result in parts]
    return "\n\n".join([text, *added]).strip()


class Worker:
    """Turns a task into text."""

    def __init__(self, model: Model, settings: AgentSettings) -> None:
        self._model = model
        self._settings = settings

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
        room = (self._settings.context_chars or room_of(self._model)) >> tries
        text = await (self._work if task.leaf else self._merge)(plan, task, write, seed, room)
        if not text:
            raise ModelError("the model wrote nothing")
        return text

    async def _work(self, plan: Plan, task: Task, write: Callable[[str], None], seed: int, room: int) -> str:
        prompts = self._settings.prompts.executor
        results = context.dependencies(plan, task)
        values = self._values(plan, task, room) | {
            "siblings": cut("; ".join(one_line(item.title) for item in context.siblings(plan, task)), room // 6),
            "results": "\n" + sections(results, room // 2) if results else "",
            "skill": task.step.needs if len(plan.policy.skills) > 1 else "",
        }
        facts: dict[str, Any] = {
            "title": task.title,
            "goal": plan.goal.title,
            "path": [item.title for item in context.ancestors(plan, task)],
            "results": [title for title, _ in results],
            "notes": context.notes(plan, task),
        }
        template = prompts.small_work if self._small else prompts.work
        return await self._write("work", plan, task, fill(template, values), facts, write, seed)

    async def _merge(self, plan: Plan, task: Task, write: Callable[[str], None], seed: int, room: int) -> str:
        prompts = self._settings.prompts.executor
        parts = context.parts_of(plan, task)
        values = self._values(plan, task, room) | {
            "parts": sections(parts, room * 2 // 3),
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
            # It can't weave long texts together; it can say what they are, and they follow as they are.
            text = await self._write("merge", plan, task, fill(prompts.small_merge, values), facts, write, seed)
            return finish(append(text, parts, MAX_OUTPUT - 200), False, prompts.cut_note) if text else ""
        text = await self._write("merge", plan, task, fill(prompts.merge, values), facts, write, seed)
        missing = left_out(text, parts)
        if missing and len(missing) < len(parts):
            # Most is there: appending the rest costs nothing and loses nothing.
            return finish(append(text, missing, MAX_OUTPUT - 200), False, prompts.cut_note)
        if missing:
            values["missing"] = prompts.missing + "; ".join(title for title, _ in missing)
            text = await self._write("merge", plan, task, fill(prompts.merge, values), facts, write, seed + 1)
            text = finish(append(text, left_out(text, parts), MAX_OUTPUT - 200), False, prompts.cut_note)
        return text

    def _tokens(self, purpose: str) -> int:
        """A small model loses the thread soon: it's cut short rather."""
        most = min(self._settings.work_tokens, SMALL_TOKENS) if self._small else self._settings.work_tokens
        return most * 3 // 2 if purpose == "merge" and not self._small else most

    def _values(self, plan: Plan, task: Task, room: int) -> dict[str, str]:
        above = context.ancestors(plan, task)
        return {
            "goal": one_line(plan.goal.title) if above else "",
            "path": cut(" › ".join(one_line(item.title) for item in above[1:]), room // 6),
            "notes": cut(" ".join(one_line(note) for note in context.notes(plan, task)), room // 6),
            "detail": cut(one_line(task.step.detail), room // 4),
            "title": one_line(task.title),
        }

    async def _write(
        self,
        purpose: str,
        plan: Plan,
        task: Task,
        prompt: str,
        facts: dict[str, Any],
        write: Callable[[str], None],
        seed: int,
    ) -> str:
        prompts = self._settings.prompts.executor
        reply = await self._model.generate(
            Request(
                agent=self._settings.name,
                purpose="work" if purpose == "work" else "merge",
                subject=task.title,
                system=(prompts.small_system if self._small else prompts.system).strip(),
                prompt=prompt,
                max_tokens=self._tokens(purpose),
                temperature=0.5,
                seed=seed,
                priority=Urgency.AWAITED if purpose == "merge" or context.awaited(plan, task) else Urgency.WORK,
                facts=facts,
            ),
            write,
        )
        return finish(reply.text, reply.cut, prompts.cut_note)
