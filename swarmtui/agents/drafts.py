"""From what a model wrote to the steps of a draft: reading, checking, mending. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

from swarmtui.plan.ops import DEFAULT_SKILL, MAX_TITLE, Policy, Step
from swarmtui.plan.state import Plan, Task

from . import context
from .prompting import Angle, DrafterPrompts, Prompts
from .tongues import Language, is_foreign, script_of
from .wording import covered, cut, is_form_of, is_whole, one_line, sentences, shared, words

SAME = 0.75
"""Two steps that share more of their words are one step said twice."""
RESTATES = 0.75
"""A step that holds so many of the task's words, and adds hardly any, is the task again."""
COPIED = 0.75
"""A step that has so much of an example's or a neighbour's words, and they of its, was copied."""
ATOMIC_WORDS = 10
_TRIM = " -–*•.:;\"'"
_NUMBER = re.compile(
    r"^(?:(?:step|schritt|étape|etape|paso|passo|ステップ|шаг)\s*\d{1,2}\s*[-–:.]*\s*"
    r"|\(?\d{1,2}(?:[.\-–]\d{1,2})*[.):、．]+(?:\d{1,2}(?:[.\-–]\d{1,2})*[.):]*)?\s*"
    r"|\d{4}-\d{2}-\d{2}\s*[:,–-]*\s*"
    r"|第\d{1,2}[^\d\s]?[:：.]?\s*)+",
    re.I,
)
_PLACE = re.compile(r"[\[<{](?:insert|step|your|\.\.\.)[^\]>}]*[\]>}]", re.I)
"""A place in a form that the model left open."""
_OPEN_END = re.compile(
    r"\s(?:the|a|of|and|or|der|das|und|oder|von|le|les|des|et|el|los|las|una|di|della)[\s.…]*$", re.I
)
"""Words that a step can't end in."""
_LIST_INSIDE = re.compile(r"[\s,]+\d{1,2}[.)]\s")
"""A detail that goes on to the next point of a list."""
_LABEL = re.compile(r"^([^:：]{4,60})[:：]\s+(.{12,})$")
"""A title that goes on after a colon: its end belongs into the detail."""
MAX_DETAIL = 1_000
TORN = 120
"""A detail of so many characters that ends without a stop was ended by its form."""
_JOINTS = (" and ", ", ", " & ", "; ", " und ", " et ", " y ")


@dataclass(frozen=True, slots=True)
class Checks:
    """What the steps of one draft are looked at for."""

    task: str
    fan_out: tuple[int, int]
    shown: tuple[str, ...]
    """Steps of all examples: a refinement may carry one over from another angle's draft."""
    planned: tuple[str, ...]
    """Titles that stand elsewhere in the plan, the goal among them."""
    language: Language
    prompts: Prompts

    @classmethod
    def of(cls, plan: Plan, task: Task, angle: Angle, prompts: Prompts) -> Checks:
        """Those of a draft of this task, written from this angle, as the plan stands."""
        angles = [angle, *prompts.angles]
        return cls(
            task=task.title,
            fan_out=plan.policy.fan_out,
            shown=tuple(step for angle in angles for example in angle.examples for step in example.steps),
            planned=tuple(context.planned(plan, task)),
            language=prompts.language(f"{plan.goal.title} {task.title}"),
            prompts=prompts,
        )

    def faults(self, titles: list[str]) -> list[str]:
        """What is wrong with a whole draft, in words."""
        found = faults(titles, self.task, self.fan_out[0], self.shown, self.planned)
        return [*found, "it is in another language"] if self.foreign(titles) else found

    def faulty(self, title: str) -> bool:
        """Whether something is wrong with a step by itself."""
        return bool(fault(title, self.task, self.shown, self.planned))

    def foreign(self, titles: list[str]) -> bool:
        """Whether these steps are plainly in another language than the goal."""
        return is_foreign(" ".join(titles), self.language, self.prompts.languages)


def read_steps(value: Any) -> list[dict[str, Any]]:
    """The steps in a model's answer, as dicts with at least a title; blank ones are left out."""
    found: list[dict[str, Any]] = []
    items = value.get("steps", []) if isinstance(value, dict) else value
    for item in items if isinstance(items, list) else []:
        fields = dict(item) if isinstance(item, dict) else {"title": item}
        title = _bare(str(fields.get("title", "")))
        detail = one_line(str(fields.get("detail") or ""))
        if (label := _LABEL.match(title)) and len(label[1].split()) >= 2:
            title, detail = label[1].strip(_TRIM), detail or label[2]
        if title:
            fields["title"], fields["detail"] = cut(_capital(title), MAX_TITLE), _detail(detail, title)
            found.append(fields)
    return found


def _bare(title: str) -> str:
    """A title without what models put around it: numbers, dashes, bold, quotes."""
    text = one_line(title).replace("**", "").replace("__", " ").replace("`", "").strip(_TRIM)
    return _NUMBER.sub("", text).strip(_TRIM)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _detail(text: str, title: str) -> str:
    """Whole sentences of a detail that say more than the title."""
    text = _LIST_INSIDE.split(one_line(_NUMBER.sub("", text.replace("**", "").strip())), maxsplit=1)[0].strip()
    if text.endswith((",", ";", ":", "、", "：")):
        return ""
    parts = sentences(text)
    if len(parts) > 1 and not is_whole(text):
        text = " ".join(parts[:-1])  # The form has a length; the last sentence is often torn.
    elif len(parts) == 1 and not is_whole(text) and len(text) >= TORN:
        return ""
    if len(words(text) - words(title)) < 2:
        return ""
    return cut(text, MAX_DETAIL)


def alike(first: str, second: str, task: str) -> float:
    """How much two steps have in common besides the task's own words, 0 to 1."""
    own = words(task)
    one, two = words(first) - own, words(second) - own
    if not one or not two:
        return shared(first, second)
    return len(one & two) / min(len(one), len(two))


def repeats(titles: Sequence[str], task: str) -> list[tuple[int, int]]:
    """Pairs of steps (earlier, later) that share more than three quarters of their words, the task's own left out."""
    return [(i, j) for j in range(len(titles)) for i in range(j) if alike(titles[i], titles[j], task) > SAME]


def restates(title: str, task: str) -> bool:
    """Whether a step holds three quarters of the task's words, in whatever form, and hardly any besides."""
    own, said = words(task), words(title)
    held = sum(any(is_form_of(word, other) for other in said) for word in own)
    extra = sum(not any(is_form_of(word, other) for other in own) for word in said)
    return held >= RESTATES * len(own) and extra <= max(1, len(own) // 4)


def says_nothing(title: str, task: str) -> bool:
    """Whether a step is no instruction at all: a single word, a date, an open place in a form, or in other letters than
    the task."""
    letters = sum(c.isalpha() for c in title)
    if letters < 3 or _PLACE.search(title):
        return True
    script, own = script_of(title), script_of(task)
    if own == "latin":
        return script != "latin" or len([word for word in title.split() if any(c.isalpha() for c in word)]) < 2
    # Other scripts take up names and words in Latin letters, but hardly a whole step.
    return own in ("kana", "han", "hangul", "cyrillic", "greek") and script not in (own, "kana", "han")


def breaks_off(title: str) -> bool:
    """Whether a step ends in a word that can't be the last: the form's length has cut it."""
    return _OPEN_END.search(title) is not None


def copies(title: str, texts: Iterable[str]) -> bool:
    """Whether a step is nearly one of these texts."""
    return any(covered(text, title) >= COPIED and covered(title, text) >= COPIED for text in texts)


def fault(title: str, task: str, examples: Sequence[str], planned: Sequence[str]) -> str:
    """What is wrong with a step by itself, in words; "" if nothing. Arguments as in `faults`."""
    if restates(title, task):
        return "says the task again"
    if says_nothing(title, task):
        return "says nothing"
    if breaks_off(title):
        return "breaks off"
    if copies(title, examples):
        return "is copied from the example"
    return "is planned elsewhere" if copies(title, planned) else ""


def faults(titles: Sequence[str], task: str, low: int, examples: Iterable[str], planned: Iterable[str]) -> list[str]:
    """What is wrong with a draft by plain looking, in words; empty if nothing.

    Args:
        titles: of the steps.
        task: the title of the task that's split.
        low: fewest steps.
        examples: steps that the prompt showed.
        planned: titles that stand elsewhere in the plan.
    """
    examples, planned = list(examples), list(planned)
    found = [f"step {j + 1} repeats step {i + 1}" for i, j in repeats(titles, task)]
    alone = ((number, fault(title, task, examples, planned)) for number, title in enumerate(titles, 1))
    found += [f"step {number} {wrong}" for number, wrong in alone if wrong]
    if len(titles) < low:
        found.append(f"fewer than {low} steps")
    return found


def mend(
    steps: Sequence[dict[str, Any]],
    task: str,
    fan_out: tuple[int, int],
    examples: Iterable[str],
    planned: Iterable[str],
    usual: Iterable[str],
) -> tuple[list[dict[str, Any]], int]:
    """Leave out the steps with faults; where too few are left, add the angle's usual ones.

    Returns:
        The steps, and how many of them are usual ones.
    """
    examples, planned = list(examples), list(planned)
    low, high = fan_out
    kept: list[dict[str, Any]] = []
    for step in steps:
        title = step["title"]
        if not fault(title, task, examples, planned) and not any(
            alike(title, other["title"], task) > SAME for other in kept
        ):
            # What was left out has shifted the numbers, so the order given by the model can't be kept.
            kept.append({key: item for key, item in step.items() if key != "after"})
    added = 0
    for text in usual:
        if len(kept) >= low:
            break
        kept.append({"title": cut(Template(text).safe_substitute(task=task), MAX_TITLE)})
        added += 1
    return kept[:high], added


def to_steps(
    found: Sequence[dict[str, Any]], policy: Policy, task: str, depth: int, prompts: DrafterPrompts
) -> tuple[Step, ...]:
    """Make the steps of a proposal, with sensible values for what the model didn't say.

    Args:
        found: read and checked.
        policy: of the plan.
        task: the title of the task that's split.
        depth: of that task; its children stand one deeper.
        prompts: for the words that tell order and skill.
    """
    steps: list[Step] = []
    for index, fields in enumerate(found):
        title = fields["title"]
        after = _after(fields.get("after"), index)
        if after is None:
            after = after_by_looks(title, [step.title for step in steps], task, prompts)
        atomic = fields.get("atomic")
        steps.append(
            Step(
                title=title,
                detail=cut(one_line(str(fields.get("detail") or "")), MAX_DETAIL),
                atomic=atomic if isinstance(atomic, bool) else atomic_by_looks(title, depth + 1, policy.max_depth),
                needs=_skill(fields.get("needs"), title, policy, prompts),
                after=after,
            )
        )
    return tuple(steps)


def after_by_looks(title: str, earlier: Sequence[str], task: str, prompts: DrafterPrompts) -> tuple[int, ...]:
    """A guess at the earlier steps that a step rests on, where a model can't be asked.

    A step that looks at the others' work ("review …") comes after all. One that names what an earlier step settles
    ("Choose a venue", then "Decorate the venue") comes after that.
    """
    folded = title.casefold()
    if earlier and (folded.startswith(prompts.last_words) or folded.endswith(prompts.last_words)):
        return tuple(range(len(earlier)))
    own = words(task)
    return tuple(
        index
        for index, other in enumerate(earlier)
        if other.casefold().startswith(prompts.first_words) and (_things(other) & _things(title)) - own
    )


def _things(title: str) -> frozenset[str]:
    """The words of a title but its first, which says what is done, not to what."""
    _, _, rest = title.partition(" ")
    return frozenset(word for word in words(rest) if len(word) > 2) if rest else frozenset()


def atomic_by_looks(title: str, depth: int, max_depth: int) -> bool:
    """A guess at whether one executor can do a step in one go: it's short and names one thing, or stands deep."""
    if depth >= max_depth:
        return False  # It's a leaf by its place; the word would add nothing.
    if depth >= 2:
        return True
    lowered = f" {title.casefold()} "
    return len(title.split()) <= ATOMIC_WORDS and not any(joint in lowered for joint in _JOINTS)


def _after(value: Any, index: int) -> tuple[int, ...] | None:
    """Numbers counted from 1, as models count, to indexes of earlier steps; None if the model said nothing."""
    if not isinstance(value, list):
        return None
    numbers = {item - 1 for item in value if isinstance(item, int) and not isinstance(item, bool)}
    return tuple(sorted(number for number in numbers if 0 <= number < index))


def _skill(value: Any, title: str, policy: Policy, prompts: DrafterPrompts) -> str:
    """What the model said; else the skill that the title's words tell; else the usual one."""
    skills = policy.skills or (DEFAULT_SKILL,)
    if value in skills:
        return str(value)
    if len(skills) > 1:
        folded = f" {one_line(title).casefold()}"
        for skill in skills:
            if any(f" {word}" in folded for word in (skill.casefold(), *prompts.skill_words.get(skill, ()))):
                return skill
    return DEFAULT_SKILL if DEFAULT_SKILL in skills else skills[0]
