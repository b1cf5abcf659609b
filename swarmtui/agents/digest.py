"""A merge by a small model: its introduction, and of each part the points that say most. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .context import Part
from .prose import unmarked
from .wording import cut, one_line, sentences

POINTS = 2
POINT_CHARACTERS = 120
LABEL_CHARACTERS = 12
CUT = " …"
STOPS = ("…", "。", "!", "?", "！", "？")


def digest(introduction: str, parts: Sequence[Part], limit: int) -> str:
    """The text of a merge, in which every part stands by its title.

    Args:
        introduction: may be empty.
        parts: titles and results; results are lists or prose.
        limit: characters of the whole.
    """
    share = max(40, (limit - len(introduction) - 10) // max(1, len(parts)))
    lines = [cut(_line(title, result), share) for title, result in parts]
    text = "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
    return cut("\n\n".join(part for part in (introduction, text) if part), limit)


def _line(title: str, result: str) -> str:
    points = [point for line in result.split("\n") if (point := unmarked(line))]
    name = f"**{one_line(title).replace('*', '')}**"
    short = [_short(point) for point in points]
    # What would have to be cut in mid-sentence only stands there if nothing else would.
    whole = [point for point in short if not point.endswith(CUT)] or short[:1]
    said = "; ".join(point.rstrip(".;,。 ") for point in whole[:POINTS])
    return f"{name}: {said}{'' if said.endswith(STOPS) else '.'}" if said else name


def _short(point: str) -> str:
    """A point's first sentence, or what stands before its colon if that is still too long."""
    first = (sentences(point) or [point])[0]
    label, colon, _ = first.partition(": ")
    if len(first) > POINT_CHARACTERS and colon and len(label) >= LABEL_CHARACTERS:
        return label
    return first if len(first) <= POINT_CHARACTERS else f"{cut(first, POINT_CHARACTERS)}{CUT}"
