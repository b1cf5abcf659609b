"""What a person types as a goal, made into a title and a detail that fit a plan, or refused with a reason."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from swarmtui.plaintext import clean, removed
from swarmtui.plan.ops import MAX_TEXT, MAX_TITLE

MAX_GOAL = MAX_TEXT
"""Characters that a goal may have in all."""

_SENTENCE_END = re.compile(r"[.!?…。！？؟](?=\s|$)|[。！？]")


class GoalText(NamedTuple):
    """The words of a goal, within the limits of the protocol."""

    title: str
    detail: str
    note: str
    """What was changed, in a sentence for the person; '' if nothing was."""


def parse_goal(text: str) -> GoalText:
    """Split what a person typed into a title of at most 200 characters and the rest.

    The first line is the title. A first line that is too long gives its first sentence, or its first words, to the
    title; then the whole of it stands in the detail, so that nothing is lost.

    Raises:
        ValueError: with a sentence that says why the goal is refused and what to do.
    """
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        raise ValueError("The goal isn't valid UTF-8 text: type it again.")
    words = "\n".join(line.rstrip() for line in clean(text).split("\n")).strip()
    if not any(unicodedata.category(c)[0] in "LNS" for c in words):
        raise ValueError("The goal is empty: say in a sentence what should be planned.")
    if len(words) > MAX_GOAL:
        raise ValueError(
            f"The goal has {len(words):,} characters and may have {MAX_GOAL:,}: shorten it to what matters."
        )
    first, _, rest = words.partition("\n")
    notes = []
    if count := removed(text):
        notes.append(f"{count} control character{'s' if count > 1 else ''} left out.")
    if len(first) <= MAX_TITLE:
        return GoalText(" ".join(first.split()), rest.strip(), " ".join(notes))
    title = _short_title(first)
    notes.append(
        f"The first line is long: its beginning is the title ({len(title)} characters), the detail holds it all."
    )
    return GoalText(title, words, " ".join(notes))


def _short_title(line: str) -> str:
    """Return the first sentence if it fits, else the first words and an ellipsis."""
    line = " ".join(line.split())
    end = _SENTENCE_END.search(line)
    if end is not None and end.end() <= MAX_TITLE:
        return line[: end.end()].strip()
    head = line[: MAX_TITLE - 1]
    cut = head.rfind(" ")
    if cut < MAX_TITLE // 2:  # a script without spaces, or one endless word
        cut = len(head)
    return head[:cut].rstrip(" ,;:-") + "…"
