"""Prompts as data: TOML files in `prompts/`, each of which a user can lay their own over, and the filling of them.

A template's places are `$name` (:class:`string.Template`); what is put in is never looked at again, so a title with
dollars or braces is only text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

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
    full: str
    """Added for models that can say more of a step than its title."""
    small_system: str
    small: Annotated[tuple[str, ...], Meta(min_length=1)]
    """For small models, one after the other."""
    last_words: tuple[str, ...]
    """A step that starts with one of them comes after all the others."""


class Neutral(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks to compare with, in one language."""

    language: str
    """Its code, e.g. "de"."""
    words: tuple[str, ...]
    """Little words that tell the language."""
    letters: str
    """Letters that tell it."""
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
    neutral: Annotated[tuple[Neutral, ...], Meta(min_length=1)]
    """Tasks to compare with; the first for any language."""


class ExecutorPrompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    system: str
    work: str
    merge: str
    missing: str
    cut_note: str
    small_system: str
    small_work: str
    small_merge: str


class _Angles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    angle: tuple[Angle, ...]


@dataclass(frozen=True, slots=True)
class Prompts:
    """All that agents say to models."""

    decomposer: DrafterPrompts
    angles: tuple[Angle, ...]
    scorer: ScorerPrompts
    executor: ExecutorPrompts

    @classmethod
    def load(cls, folder: Path | None = None) -> Prompts:
        """Read the prompts of this package, or the user's file of the same name where `folder` has one.

        A user's file needs only the keys that differ.

        Raises:
            PromptError: a file is unreadable, or a key is unknown, missing or of the wrong type.
        """
        angles = _read("angles", folder, _Angles).angle
        if not angles:
            raise PromptError("angles.toml lists no angle")
        return cls(
            decomposer=_read("decomposer", folder, DrafterPrompts),
            angles=angles,
            scorer=_read("scorer", folder, ScorerPrompts),
            executor=_read("executor", folder, ExecutorPrompts),
        )


_Form = TypeVar("_Form", DrafterPrompts, ScorerPrompts, ExecutorPrompts, _Angles)


def _read(name: str, folder: Path | None, form: type[_Form]) -> _Form:
    where = f"{name}.toml"
    try:
        values = tomllib.loads(files(__package__).joinpath("prompts", where).read_text("utf-8"))
        own = folder / where if folder else None
        if own is not None and own.is_file():
            where = str(own)
            values |= tomllib.loads(own.read_text("utf-8"))
        found = msgspec.convert(values, form)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise PromptError(f"{where}: {error}") from error
    for key, item in values.items():
        texts = item if isinstance(item, list) else [item]
        if not all(Template(text).is_valid() for text in texts if isinstance(text, str)):
            raise PromptError(f"{where}: {key} holds a $ that starts no name (write $$ for a dollar)")
    return found


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


def listed(texts: Iterable[str]) -> str:
    """Texts as dashes, one line each."""
    return "\n".join(f"- {one_line(text)}" for text in texts)


def sections(parts: Sequence[tuple[str, str]], room: int) -> str:
    """Titles with their texts, shortened alike so that all fit into about `room` characters."""
    if not parts:
        return ""
    share = max(80, room // len(parts) - 40)
    spare = sum(max(0, share - len(text)) for _, text in parts)
    long = sum(len(text) > share for _, text in parts)
    share += spare // long if long else 0
    return "\n\n".join(f"{one_line(title)}:\n{cut(text, share)}" for title, text in parts)


_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([mb])(?![a-z])", re.IGNORECASE)
SMALL_BILLIONS = 2.5


def is_small(model: str) -> bool:
    """Whether a model's name gives a size (135M, 1.5B) that's too small for more than titles."""
    for number, unit in _SIZE.findall(model.replace("-", " ").replace("_", " ")):
        billions = float(number) / (1000 if unit in "mM" else 1)
        return billions < SMALL_BILLIONS
    return False


def split_schema(fan_out: tuple[int, int], skills: Sequence[str], full: bool) -> dict[str, Any]:
    """The form of a draft: an object with `steps`; with `full`, each step says more than its title."""
    title = {"type": "string", "minLength": 4, "maxLength": 100}
    if not full:
        items: dict[str, Any] = title
    else:
        fields: dict[str, Any] = {
            "title": title,
            "detail": {"type": "string", "maxLength": 240},
            "atomic": {"type": "boolean"},
            "after": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": fan_out[1] - 1},
                "minItems": 0,
                "maxItems": 3,
            },
        }
        if len(skills) > 1:
            fields["needs"] = {"type": "string", "enum": list(skills)}
        items = _object(fields)
    return _object({"steps": {"type": "array", "items": items, "minItems": fan_out[0], "maxItems": fan_out[1]}})


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
