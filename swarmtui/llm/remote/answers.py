"""Making sense of what a model on a server wrote: JSON that is nearly what was asked is mended, the rest refused.

A server may ignore the schema, wrap the JSON in talk, or stop in the middle of it. Pure.
"""

from __future__ import annotations

import json
from typing import Any

from swarmtui.llm import grammar


class Unusable(ValueError):
    """What was written isn't what was asked; `str()` says what's wrong with it, for the model to read."""


def read(text: str, schema: dict[str, Any]) -> Any:
    """The value that a text holds, valid against the schema.

    Raises:
        Unusable: there's none.
    """
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        raise Unusable("there is no JSON in it")
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        try:
            value = json.loads(closed(text[start:]))
        except (ValueError, RecursionError):
            raise Unusable("the JSON in it is broken") from None
    value = fitted(value, schema)
    why = grammar.fault(schema, value)
    if why:
        raise Unusable(why)
    return value


def fitted(value: Any, schema: dict[str, Any]) -> Any:
    """The value, with what is too long cut, what wasn't asked for left out, and what may be missing filled in."""
    if "enum" in schema or "const" in schema:
        return value
    kind = schema.get("type")
    if kind == "object" and isinstance(value, dict):
        known = schema.get("properties", {})
        required = set(schema.get("required", ()))
        found = {key: fitted(value[key], each) for key, each in known.items() if key in value}
        return found | {
            key: grammar.minimal(each) for key, each in known.items() if key not in found and key not in required
        }
    if kind == "array" and isinstance(value, list):
        return [fitted(each, schema["items"]) for each in value[: schema.get("maxItems")]]
    if kind == "string":
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        return value[: schema.get("maxLength")] if isinstance(value, str) else value
    if kind == "integer" and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = round(float(value))
        except (ValueError, OverflowError):
            return value
        return min(schema.get("maximum", number), max(schema.get("minimum", number), number))
    return value


def closed(text: str) -> str:
    """JSON that broke off, with what is open closed and the last, half-written thing left out."""
    stack: list[str] = []
    quoted = escaped = False
    ends: list[tuple[int, int]] = []
    """Where a whole value has ended, and how many brackets are open there."""
    for i, c in enumerate(text):
        if quoted:
            if escaped:
                escaped = False
            elif c == "\\":
                escaped = True
            elif c == '"':
                quoted = False
            continue
        if c == '"':
            quoted = True
        elif c in "{[":
            stack.append("}" if c == "{" else "]")
            ends.append((i + 1, len(stack)))
        elif c in "}]" and stack:
            stack.pop()
            if not stack:
                return text[: i + 1]
            ends.append((i + 1, len(stack)))
        elif c == ",":
            ends.append((i, len(stack)))
    if not ends:
        return text
    last, depth = ends[-1]
    return text[:last] + "".join(reversed(stack[:depth]))
