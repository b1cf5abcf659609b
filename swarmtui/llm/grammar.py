"""JSON that always parses: a schema becomes a walk in which only the values are left to the model.

`Filler.fill` yields what is wanted next (`Fixed` text, a `Choice`, a `Text`, a `Number`) and is sent what was written.
Keys, brackets and commas are never sampled, so a small model can't get them wrong and they cost no sampling. When the
budget ends (`cut` is set), the walk closes what is open with the least that the schema allows: the value is valid
whatever happens. Pure: knows nothing of tokens.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, TypeAlias

import msgspec

DEFAULT_TEXT = 4_000
"""Characters of a string whose schema has no maxLength."""
SINGLE_LINE = 200
"""Strings of at most so many characters end at a line break (a tiny model's usual way to end a title)."""
DEFAULT_NUMBER = 1_000_000
DEFAULT_ITEMS = 16
FILLER = "…"
"""What stands in a string that had to have a length when the budget ended."""


class SchemaError(ValueError):
    """The schema uses something that the walk can't promise to honour."""


class Fixed(msgspec.Struct, frozen=True):
    """Text that stands whatever the model thinks. Sent back: None."""

    text: str


class Choice(msgspec.Struct, frozen=True):
    """One of several texts. Sent back: its index."""

    options: tuple[str, ...]


class Text(msgspec.Struct, frozen=True):
    """The inside of a JSON string; its opening quote stands already. Sent back: the string.

    The writer ends it with the closing quote as the start of what is fixed next.
    """

    least: int
    most: int

    @property
    def single_line(self) -> bool:
        """Whether a line break ends it."""
        return self.most <= SINGLE_LINE


class Number(msgspec.Struct, frozen=True):
    """A whole number from `least` to `most`, not negative. Sent back: the number."""

    least: int
    most: int


Ask: TypeAlias = Fixed | Choice | Text | Number
Walk: TypeAlias = Generator[Ask, Any, Any]


def check(schema: dict[str, Any]) -> None:
    """Raise SchemaError where the schema can't be promised."""
    known = {"title", "description", "type", "enum", "const", "default", "$schema"}
    extra = {
        "object": {"properties", "required", "additionalProperties"},
        "array": {"items", "minItems", "maxItems"},
        "string": {"minLength", "maxLength"},
        "integer": {"minimum", "maximum"},
        "boolean": set(),
        "null": set(),
    }
    if "enum" in schema or "const" in schema:
        options = schema.get("enum", [schema.get("const")])
        if not options or not all(isinstance(each, str | int | bool | None) for each in options):
            raise SchemaError("an enum needs at least one plain value")
        return
    kind = schema.get("type")
    if kind not in extra:
        raise SchemaError(f"type {kind!r} isn't supported")
    odd = set(schema) - known - extra[kind]
    if odd:
        raise SchemaError(f"{', '.join(sorted(odd))} isn't supported in a schema")
    if kind == "object":
        missing = set(schema.get("required", ())) - set(schema.get("properties", {}))
        if missing:
            raise SchemaError(f"required but not described: {', '.join(sorted(missing))}")
        for each in schema.get("properties", {}).values():
            check(each)
    elif kind == "array":
        check(schema["items"])
        if not 0 <= schema.get("minItems", 0) <= schema.get("maxItems", DEFAULT_ITEMS):
            raise SchemaError("minItems is above maxItems")
    elif kind == "string" and not 0 <= schema.get("minLength", 0) <= schema.get("maxLength", DEFAULT_TEXT):
        raise SchemaError("minLength is above maxLength")
    elif kind == "integer" and not 0 <= schema.get("minimum", 0) <= schema.get("maximum", DEFAULT_NUMBER):
        raise SchemaError("whole numbers go from 0 up")


class Filler:
    """One walk through a checked schema."""

    def __init__(self) -> None:
        self.cut = False
        """Set by the writer when the budget has ended: nothing more is asked, what is open is closed."""

    def fill(self, schema: dict[str, Any]) -> Walk:
        """Walk; returns the value, which is valid against the schema whatever was sent and whenever it was cut.

        Objects get all their properties, in the schema's order. A writer that sets `cut` sends what it has for the
        current ask: the text so far, or None.
        """
        if self.cut:
            return minimal(schema)
        if "const" in schema or "enum" in schema:
            return (yield from self._one_of(schema.get("enum", [schema.get("const")])))
        kind = schema["type"]
        if kind == "object":
            return (yield from self._object(schema.get("properties", {})))
        if kind == "array":
            return (yield from self._array(schema))
        if kind == "string":
            return (yield from self._string(schema.get("minLength", 0), schema.get("maxLength", DEFAULT_TEXT)))
        if kind == "integer":
            least, most = schema.get("minimum", 0), schema.get("maximum", DEFAULT_NUMBER)
            number = yield Number(least, most)
            return least if number is None else min(most, max(least, number))
        return (yield from self._one_of([False, True] if kind == "boolean" else [None]))

    def _object(self, properties: dict[str, dict[str, Any]]) -> Walk:
        value: dict[str, Any] = {}
        yield Fixed("{")
        for key, each in properties.items():
            if not self.cut:
                yield Fixed(f"{', ' if value else ''}{dumps(key)}: ")
            value[key] = yield from self.fill(each)
        if not self.cut:
            yield Fixed("}")
        return value

    def _array(self, schema: dict[str, Any]) -> Walk:
        least, most = schema.get("minItems", 0), schema.get("maxItems", max(DEFAULT_ITEMS, schema.get("minItems", 0)))
        items: list[Any] = []
        if most == 0:
            yield Fixed("[]")
            return items
        if least == 0 and (yield Choice(("[]", "["))) in (0, None):
            return items
        if least:
            yield Fixed("[")
        while not self.cut:
            item = yield from self.fill(schema["items"])
            # Half an item that nobody requires is worth less than none.
            if not self.cut or len(items) < least:
                items.append(item)
            if self.cut:
                break
            if len(items) >= most:
                yield Fixed("]")
                break
            if len(items) < least:
                yield Fixed(", ")
            elif (yield Choice((",", "]"))) == 0:
                yield Fixed(" ")
            else:
                break
        return items + [minimal(schema["items"]) for _ in range(least - len(items))]

    def _string(self, least: int, most: int) -> Walk:
        yield Fixed('"')
        text: str = yield Text(least, most)
        return _padded((text or "")[:most], least)

    def _one_of(self, options: list[Any]) -> Walk:
        if len(options) == 1:
            yield Fixed(dumps(options[0]))
            return options[0]
        index: int | None = yield Choice(tuple(dumps(each) for each in options))
        return options[index or 0]


def _padded(text: str, least: int) -> str:
    """The text, filled up to `least` characters, at least one of which isn't a blank."""
    if len(text) >= least and (text.strip() or not least):
        return text
    return text.strip().ljust(least, FILLER)


def minimal(schema: dict[str, Any]) -> Any:
    """The least value that a checked schema allows."""
    if "const" in schema or "enum" in schema:
        return schema.get("enum", [schema.get("const")])[0]
    kind = schema["type"]
    if kind == "object":
        return {key: minimal(each) for key, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [minimal(schema["items"]) for _ in range(schema.get("minItems", 0))]
    if kind == "string":
        return FILLER * int(schema.get("minLength", 0))
    if kind == "integer":
        return schema.get("minimum", 0)
    return False if kind == "boolean" else None


def fault(schema: dict[str, Any], value: Any) -> str:
    """Why the value isn't valid against a checked schema; '' if it is."""
    if "const" in schema or "enum" in schema:
        options = schema.get("enum", [schema.get("const")])
        return (
            "" if any(value == each and type(value) is type(each) for each in options) else f"{value!r} isn't an option"
        )
    kind = schema["type"]
    if kind == "object":
        if not isinstance(value, dict):
            return "not an object"
        for key in schema.get("required", ()):
            if key not in value:
                return f"{key} is missing"
        faults = (
            f"{key}: {why}"
            for key, each in schema.get("properties", {}).items()
            if key in value and (why := fault(each, value[key]))
        )
        return next(faults, "")
    if kind == "array":
        if not isinstance(value, list):
            return "not a list"
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{len(value)} items"
        return next((why for each in value if (why := fault(schema["items"], each))), "")
    if kind == "string":
        if not isinstance(value, str):
            return "not a text"
        return (
            ""
            if schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
            else f"length {len(value)}"
        )
    if kind == "integer":
        if not isinstance(value, int) or isinstance(value, bool):
            return "not a whole number"
        return (
            "" if schema.get("minimum", value) <= value <= schema.get("maximum", value) else f"{value} is out of range"
        )
    good = isinstance(value, bool) if kind == "boolean" else value is None
    return "" if good else f"not {kind}"


def dumps(value: Any) -> str:
    """The one way that JSON is written here: one line, blanks after `,` and `:`, Unicode as it is."""
    return json.dumps(value, ensure_ascii=False)
