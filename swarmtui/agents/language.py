"""Which of the languages with neutral tasks a text is in, told by its letters and its little words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .drafts import is_latin
from .prompting import Neutral

_WORD = re.compile(r"\w+", re.UNICODE)
CLEAR = 2
"""Little words or letters of one language that make a text clearly one of that language."""


def language_of(known: Sequence[Neutral], title: str, steps: Sequence[str]) -> Neutral | None:
    """The language of a task: that of its title where it is clear, else the one of which there are most signs.

    Where there's no sign at all, it's the first one if all is in plain letters, else None.
    """
    text = " ".join([title, *steps])
    most = max(_signs(each, title) for each in known)
    likely = [each for each in known if most < CLEAR or _signs(each, title) == most]
    best = max(likely, key=lambda each: _signs(each, text))
    if _signs(best, text):
        return best
    return known[0] if text.isascii() else None


def strange(known: Sequence[Neutral], own: Neutral | None, text: str) -> bool:
    """Whether a text is clearly in another language than `own`."""
    if own is None or _signs(own, text):
        return False
    if is_latin(text) != is_latin(" ".join(own.steps)):
        return True
    return any(_signs(each, text) >= CLEAR for each in known if each is not own)


def _signs(language: Neutral, text: str) -> int:
    text = text.casefold()
    words = sum(word in language.words for word in _WORD.findall(text))
    return words + sum(text.count(letter) for letter in language.letters)
