"""Prompts as data: TOML files in `prompts/`, each of which a user can lay their own over, and the filling of them.

A template's places are `$name` (:class:`string.Template`); what is put in is never looked at again, so a title with
dollars or braces is only text. docs/prompts.md is the page for those who write their own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from swarmtui.files import reason_of

from .tongues import UNKNOWN, Language, language_of
from .wording import cut, one_line


class PromptError(Exception):
    """A prompt file can't be used; the text names the file and the fault."""


class Example(msgspec.Struct, frozen=True):
    """A few-shot example of a split."""

    task: str
    steps: tuple[str, ...]


class Angle(msgspec.Struct, frozen=True):
    """One way to split a task."""

    name: str
    hint: str
    """Completes "Split it …"."""
    examples: tuple[Example, ...]
    usual: tuple[str, ...]
    """Steps that fit any task ($task), for when the model gives too few."""


class DrafterPrompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    system: str
    draft: str
    refine: str
    wrong: str
    """Added when an answer was refused."""
    small_system: str
    small: Annotated[tuple[str, ...], Meta(min_length=1)]
    """For small models, one after the other."""
    small_refine: str
    last_words: tuple[str, ...]
    """A step that starts or ends with one of them comes after all the others."""
    first_words: tuple[str, ...]
    """A step that starts with one of them settles something: a later one about the same comes after it."""
    skill_words: dict[str, tuple[str, ...]]
    """Per skill, beginnings of words that tell that a step needs it."""


class Neutral(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks to compare with, in one language."""

    language: str
    """Its name in `languages.toml`."""
    steps: Annotated[dict[str, Annotated[tuple[str, ...], Meta(min_length=1)]], Meta(min_length=3)]
    """Task → steps that belong to it, and to none of the others."""


class ScorerPrompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    system: str
    marks: str
    critique: str
    given_goal: str
    """Likelihood prefix before a step, knowing the goal (or a neutral one)."""
    given_steps: str
    """Likelihood prefix before the goal, knowing the steps."""
    given_no_steps: str
    """… knowing no steps."""
    given_step: str
    """Likelihood prefix before a step that may be another one said again."""
    neutral: Annotated[tuple[Neutral, ...], Meta(min_length=1)]
    """Tasks to compare with; the first for any language."""


class ExecutorPrompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    system: str
    work: str
    merge: str
    missing: str
    """Added to a merge whose first try left parts out."""
    wrong: str
    """Added when an answer was refused."""
    cut_note: str
    added_note: str
    """Stands before parts that were put after a merged text because it left them out."""
    small_system: str
    small_work: Annotated[tuple[str, ...], Meta(min_length=1)]
    """For small models, one after the other."""
    small_merge: str
    given_task: str
    """Likelihood prefix before a point of a small model's result, knowing its task."""
    given_none: str
    """… knowing none."""
    openers: tuple[str, ...]
    """Beginnings of sentences that only introduce an answer."""
    closers: tuple[str, ...]
    """… that only take leave."""
    first_person: tuple[str, ...]
    """Words with which a small model talks of itself."""
    loose: tuple[str, ...]
    """Beginnings of sentences that say nothing without the one before, or talk of the answer."""
    links: tuple[str, ...]
    """Words that join a sentence to the one before."""


class _Angles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    angle: Annotated[tuple[Angle, ...], Meta(min_length=1)]


class _Languages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    language: Annotated[tuple[Language, ...], Meta(min_length=1)]


_COMMON = frozenset({"title", "task", "goal", "path", "detail", "notes", "language"})
_PLACES: dict[str, dict[str, frozenset[str]]] = {
    "decomposer": dict.fromkeys(
        ("draft", "refine", "wrong", "small", "small_refine"),
        _COMMON | {"examples", "split", "low", "high", "hint", "steps", "critiques", "faults"},
    )
    | {"system": frozenset({"examples"})},
    "executor": dict.fromkeys(
        ("work", "merge", "missing", "wrong", "small_work", "small_merge", "given_task"),
        _COMMON | {"split", "results", "skill", "titles", "missing", "faults"},
    ),
    "languages": dict.fromkeys(("small", "small_work", "small_merge"), _COMMON | {"titles", "results"})
    | {"usual": frozenset({"task"})},
    "angles": {"usual": frozenset({"task"})},
}
"""Per file and key, the places that are filled."""
_TITLED = {"decomposer": ("draft", "refine"), "executor": ("work", "merge")}
"""Templates that make no sense without $title."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """All that agents say to models."""

    decomposer: DrafterPrompts
    angles: tuple[Angle, ...]
    scorer: ScorerPrompts
    executor: ExecutorPrompts
    languages: tuple[Language, ...]

    @classmethod
    def load(cls, folder: Path | None = None) -> Prompts:
        """Read the prompts of this package, with what the user's file of the same name says where `folder` has one.

        A user's file needs only the keys that differ.

        Raises:
            PromptError: a file is unreadable or of no known name, or a key is unknown, missing or of the wrong type, or
                a template names a place that nothing fills.
        """
        if folder is not None:
            _check_names(folder)
        return cls(
            decomposer=_read("decomposer", folder, DrafterPrompts),
            angles=_read("angles", folder, _Angles).angle,
            scorer=_read("scorer", folder, ScorerPrompts),
            executor=_read("executor", folder, ExecutorPrompts),
            languages=_read("languages", folder, _Languages).language,
        )

    def language(self, text: str) -> Language:
        """The language of a goal: as its letters and little words tell; of Latin letters without any, unknown."""
        return language_of(text, self.languages) if text else UNKNOWN

    def language_of_task(self, title: str, steps: Sequence[str]) -> Language:
        """The language of a task: of its title, where its steps decide if that doesn't; of plain letters without a sign
        the first, the prompts' own."""
        text = " ".join([title, *steps])
        found = language_of(title, self.languages, text)
        return self.languages[0] if not found.name and text.isascii() else found


LEAST_QUOTED = 80
"""Characters of a result that are told at least, however many there are."""

FILES = ("angles", "decomposer", "executor", "languages", "scorer")
_Form = TypeVar("_Form", DrafterPrompts, ScorerPrompts, ExecutorPrompts, _Angles, _Languages)


def _check_names(folder: Path) -> None:
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".toml")
    except FileNotFoundError:
        return  # nobody has prompts of their own
    except OSError as error:
        raise PromptError(f"{folder}: {reason_of(error)}") from error
    for name in names:
        if name.removesuffix(".toml") not in FILES:
            known = ", ".join(f"{each}.toml" for each in FILES)
            raise PromptError(f"{folder / name}: there are no prompts of this name (the files are {known})")


def shipped(name: str) -> str:
    """The text of one of this package's prompt files, by its name without `.toml`."""
    return files(__package__).joinpath("prompts", f"{name}.toml").read_text("utf-8")


def _read(name: str, folder: Path | None, form: type[_Form]) -> _Form:
    where = f"{name}.toml"
    try:
        values = tomllib.loads(shipped(name))
        own = folder / where if folder else None
        if own is not None and own.is_file():
            where = str(own)
            values |= tomllib.loads(own.read_text("utf-8"))
        found = msgspec.convert(values, form)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise PromptError(f"{where}: {reason_of(error)}") from error
    for key, text in _texts(values):
        if not Template(text).is_valid():
            raise PromptError(f"{where}: {key} holds a $ that starts no name (write $$ for a dollar)")
        allowed = _PLACES.get(name, {}).get(key)
        for place in _places(text) if allowed is not None else ():
            if place not in (allowed or ()):
                known = ", ".join(f"${each}" for each in sorted(allowed or ()))
                raise PromptError(f"{where}: {key} names ${place}, which nothing fills (there are {known})")
        if key in _TITLED.get(name, ()) and "title" not in _places(text):
            raise PromptError(f"{where}: {key} doesn't name $title, so the model wouldn't know its task")
    return found


def _texts(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every text in a prompt file with its own key, however deep it stands."""
    for key, value in values.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield key, item
            elif isinstance(item, dict):
                yield from _texts(item)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values into a template and drop the lines that are left without any.

    A line that consists of a place alone, or ends in one, goes when the value is empty, so that optional parts need
    no template of their own.
    """
    lines: list[str] = []
    for line in template.strip("\n").split("\n"):
        places = _places(line)
        if places and all(not values.get(place, "") for place in places):
            continue
        lines.append(Template(line).safe_substitute(values))
    return "\n".join(lines)


def _places(line: str) -> list[str]:
    return re.findall(r"\$\{?([a-z_]+)", line.replace("$$", ""))


def as_clause(title: str) -> str:
    """A title as it goes on in a sentence ("plan a trip to Japan"): its first letter small, unless a name or an
    abbreviation starts it."""
    title = one_line(title).rstrip(".!")
    first, _, _ = title.partition(" ")
    return title[:1].lower() + title[1:] if (len(first) > 1 and first[1:].islower()) or len(first) == 1 else title


def listed(texts: Iterable[str]) -> str:
    """Texts as dashes, one line each."""
    return "\n".join(f"- {one_line(text)}" for text in texts)


def sections(parts: Sequence[tuple[str, str]], room: int) -> str:
    """Titles with their texts, of which long ones are cut to the same length, so that all fit into about `room`
    characters.

    That length is halved until it fits: what is told of the first parts mostly stays the same when others join them, so
    a model that has read it needn't again.
    """
    most = room
    while most > 2 * LEAST_QUOTED and sum(min(len(text), most) + 40 for _, text in parts) > room:
        most //= 2
    return "\n\n".join(f"{one_line(title)}:\n{cut(text, most)}" for title, text in parts)


_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([mb])(?![a-z])", re.IGNORECASE)
SMALL_BILLIONS = 2.5


def is_small(model: str) -> bool:
    """Whether a model's name gives a size (135M, 1.5B) that's too small for more than titles."""
    for number, unit in _SIZE.findall(model.replace("-", " ").replace("_", " ")):
        billions = float(number) / (1000 if unit in "mM" else 1)
        return billions < SMALL_BILLIONS
    return False


def split_schema(fan_out: tuple[int, int], skills: Sequence[str], full: bool) -> dict[str, Any]:
    """The form of a draft: an object with `steps`, each with title and detail; with `full`, also what it rests on.

    Short enough that a title stays one: a small model asked for long strings writes a story into the first.
    """
    fields: dict[str, Any] = {
        "title": {"type": "string", "minLength": 4, "maxLength": 100 if full else 70},
        "detail": {"type": "string", "minLength": 0 if full else 10, "maxLength": 240 if full else 150},
    }
    if full:
        fields["atomic"] = {"type": "boolean"}
        fields["after"] = {
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": fan_out[1] - 1},
            "minItems": 0,
            "maxItems": 3,
        }
        if len(skills) > 1:
            fields["needs"] = {"type": "string", "enum": list(skills)}
    steps = {"type": "array", "items": _object(fields), "minItems": fan_out[0], "maxItems": fan_out[1]}
    return _object({"steps": steps})


def marks_schema() -> dict[str, Any]:
    """The form of written marks."""
    mark = {"type": "integer", "minimum": 0, "maximum": 100}
    return _object(
        {"specific": mark, "distinct": mark, "complete": mark, "critique": {"type": "string", "maxLength": 240}}
    )


def critique_schema() -> dict[str, Any]:
    """The form of a sentence of advice."""
    return _object({"critique": {"type": "string", "minLength": 8, "maxLength": 240}})


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
