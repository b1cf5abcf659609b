"""Plain looks at results: is one about its task, did a merge forget a part, where to cut. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from swarmtui.plan.ops import MAX_OUTPUT
from swarmtui.plan.state import Plan, Task

from . import context
from .prompting import ExecutorPrompts, Prompts
from .prose import items_of, plain, starts_with, unmarked
from .tongues import Language, is_foreign
from .wording import clean, covered, cut, is_whole, one_line, shared, to_last_sentence, without_loops, words

REPRESENTED = 0.3
"""A part is in the merged text if so much of its title's words, or of its first sentence's, is there."""
APPENDED_CHARACTERS = 600
"""At most so much of a part that the merged text left out is put after it."""
GIST_CHARACTERS = 240
"""At most so much of what others found out is told to a small model."""
ECHO = 0.85
"""A result whose words are to such a share its prompt's says nothing new."""
STOLEN = 0.9
"""A result that shares so many words with another task's is that one again."""
INTRODUCTION = 2
"""Sentences of a small model before the parts of a merge."""


@dataclass(frozen=True, slots=True)
class Checks:
    """What the result of one task is looked at for."""

    title: str
    told: str
    """All that the prompt says of the task."""
    siblings: tuple[str, ...]
    """What is others' work."""
    others: tuple[str, ...]
    """Results that other tasks have."""
    shown: tuple[str, ...]
    """Steps of the few-shot examples."""
    language: Language
    prompts: Prompts

    @classmethod
    def of(cls, plan: Plan, task: Task, prompts: Prompts) -> Checks:
        """Those of a task as the plan stands."""
        above = context.ancestors(plan, task)
        titles = [plan.goal.title, *(item.title for item in above), task.title]
        told = [*titles, task.step.detail, *context.notes(plan, task)]
        done = [
            text
            for other in plan.tasks.values()
            if other.live and other.leaf and other is not task
            for _, text in context.outcome(plan, other)
        ]
        return cls(
            title=task.title,
            told=" ".join(told),
            siblings=tuple(item.title for item in context.siblings(plan, task)),
            others=tuple(done),
            shown=tuple(step for angle in prompts.angles for example in angle.examples for step in example.steps),
            language=prompts.language(f"{plan.goal.title} {task.title}"),
            prompts=prompts,
        )

    @property
    def other_lines(self) -> list[str]:
        """The lines of other tasks' results."""
        return [line for text in self.others for line in map(unmarked, text.split("\n")) if len(words(line)) > 2]

    def plain(self, text: str) -> str:
        """An answer without what a model says around it, or echoes of its instructions."""
        executor = self.prompts.executor
        own = [line for line in text.split("\n") if not line.strip().casefold().startswith(_labels(executor))]
        return plain("\n".join(own), executor.openers, executor.closers, self.title)

    def faults(self, text: str) -> list[str]:
        """What is wrong with a result by plain looking, in words; empty if nothing."""
        said = words(text)
        if not text.strip() or not said:
            return ["it is empty"]
        found = []
        own = words(self.told)
        if len(said - own) < max(2, (1 - ECHO) * len(said)):
            found.append("it only repeats the task")
        if any(shared(text, other) >= STOLEN and len(said) >= len(words(other)) / 2 for other in self.others):
            found.append("it is another step's result")
        if any(
            covered(line, step) >= STOLEN and covered(step, line) >= STOLEN
            for line in text.split("\n")
            for step in self.shown
        ):
            found.append("it copies an example")
        if is_foreign(text, self.language, self.prompts.languages):
            found.append("it is in another language")
        return found

    def about_another(self, item: str) -> bool:
        """Whether a point belongs to a neighbour rather than to this task."""
        own = covered(item, self.title)
        return any(covered(title, item) >= 0.99 and covered(item, title) > own for title in self.siblings)

    def idle(self, sentence: str) -> bool:
        """Whether a small model's sentence, by its beginning, says nothing of the matter by itself."""
        executor = self.prompts.executor
        return starts_with(sentence, (*executor.openers, *executor.closers, *executor.first_person, *executor.loose))

    def personal(self, sentence: str) -> bool:
        """Whether the model talks of itself anywhere in it."""
        folded = sentence.casefold().replace("’", "'")
        return any(f" {word}" in folded for word in self.prompts.executor.first_person)

    def introduction(self, text: str, was_cut: bool) -> str:
        """The first sentences of a small model's introduction that say something; '' if none does."""
        kept: list[str] = []
        for item in items_of(self.plain(text), was_cut):
            bare = unmarked(item)
            if not is_whole(bare) or self.idle(bare) or self.personal(bare):
                continue
            if is_foreign(bare, self.language, self.prompts.languages) or any(
                shared(bare, other) > 0.6 for other in kept
            ):
                continue
            if len(words(bare) - words(self.told)) >= 3:
                kept.append(bare)
        return " ".join(kept[:INTRODUCTION])


@cache
def _labels(prompts: ExecutorPrompts) -> tuple[str, ...]:
    """How lines of the instructions begin, if by more than a word: nobody else's text begins so."""
    lines = "\n".join((prompts.work, prompts.merge, prompts.missing, prompts.wrong)).split("\n")
    heads = [line.split("$")[0].strip().casefold() for line in lines]
    return tuple(head for head in heads if " " in head)


def finish(text: str, was_cut: bool, note: str, limit: int = MAX_OUTPUT) -> str:
    """A model's answer as a result: clean, without loops, within the limit; cut at a sentence, which `note` says."""
    text = without_loops(clean(text))
    if was_cut:
        text = to_last_sentence(text)
    room = limit - len(note) - 2
    if len(text) > room:
        text, was_cut = cut(text, room), True
    return f"{text}\n\n{note}" if was_cut and text else text


def gist(parts: Sequence[context.Part]) -> str:
    """What others found out, in a line that a small model can still use."""
    share = GIST_CHARACTERS // max(1, len(parts))
    return " ".join(
        f"{one_line(title)}: {cut(' '.join(unmarked(line) for line in text.split(chr(10))), max(60, share))}"
        for title, text in parts[:3]
    )


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


def append(text: str, parts: Sequence[context.Part], limit: int, note: str, cut_note: str) -> str:
    """The text, followed by each part that it left out, shortened: `note` says so. Room for all is made in the text."""
    titles = sum(len(title) for title, _ in parts)
    least = titles + 80 * len(parts)
    if len(text) + least + len(note) > limit:
        text = finish(text, True, cut_note, limit - least - len(note) - 8 * len(parts) - 40)
    room = (limit - len(text) - len(note) - titles) // max(1, len(parts)) - 8
    share = max(0, min(APPENDED_CHARACTERS, room))
    added = [f"- {one_line(title)}: {cut(_flat(result), share)}" for title, result in parts]
    return "\n\n".join([text, note, "\n".join(added)]).strip()


def _flat(text: str) -> str:
    """A result in one line: list items become sentences."""
    lines = [unmarked(line) for line in text.split("\n") if line.strip()]
    return one_line(" ".join(line if is_whole(line) else f"{line.rstrip(' ;,')}." for line in lines))
