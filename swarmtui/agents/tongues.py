"""Which language a text is in, told by its letters and its little words. Pure.

Good enough to say to a model what to answer in, and to refuse an answer that is plainly in another language; where a
text is too short to tell, it says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = (
    ("latin", 0x0041, 0x024F),
    ("latin", 0x1E00, 0x1EFF),
    ("greek", 0x0370, 0x03FF),
    ("cyrillic", 0x0400, 0x052F),
    ("hebrew", 0x0590, 0x05FF),
    ("arabic", 0x0600, 0x06FF),
    ("devanagari", 0x0900, 0x097F),
    ("thai", 0x0E00, 0x0E7F),
    ("kana", 0x3040, 0x30FF),
    ("han", 0x3400, 0x9FFF),
    ("hangul", 0xAC00, 0xD7AF),
)
KANA_SHARE = 8
"""Japanese mixes kana with Chinese characters: one letter in so many is enough."""
LETTER_WEIGHT = 2
PLAINLY = 2
"""A text is in another language if so many more of its words and letters tell that one: names alone don't."""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A language, and how models are asked for it."""

    name: str
    script: str
    words: tuple[str, ...]
    """Little words that tell it."""
    letters: str
    """Letters that tell it."""
    ask: str = ""
    """Said to a model; empty for the language of the prompts themselves."""
    small: str = ""
    """Templates for small models; empty: those of the prompt files."""
    small_work: str = ""
    small_merge: str = ""
    usual: Annotated[tuple[str, ...], Meta(max_length=8)] = ()
    """Steps that fit any $task; empty: the angle's."""


UNKNOWN = Language(name="", script="", words=(), letters="")


def script_of(text: str) -> str:
    """The script of most letters, '' without any or of one that isn't listed."""
    counts: Counter[str] = Counter()
    for char in text:
        if char.isalpha():
            code = ord(char)
            counts[next((name for name, low, high in _SCRIPTS if low <= code <= high), "")] += 1
    if not counts:
        return ""
    if counts["kana"] * KANA_SHARE >= counts["kana"] + counts["han"] > counts.total() // 2:
        return "kana"
    return counts.most_common(1)[0][0]


def language_of(text: str, known: Sequence[Language]) -> Language:
    """The language of a text; UNKNOWN if no one of the known ones stands out."""
    ranked = _ranked(text, known)
    if len(ranked) == 1 or (ranked and ranked[0][0] > ranked[1][0]):
        return ranked[0][1]
    return UNKNOWN


def _ranked(text: str, known: Sequence[Language]) -> list[tuple[int, Language]]:
    """The languages of the text's script, the surest first; of a script with one language only, that one."""
    script = script_of(text)
    folded = text.casefold()
    said = Counter(_WORD.findall(folded))

    def sureness(language: Language) -> int:
        words = sum(said[word] for word in language.words)
        return words + LETTER_WEIGHT * sum(folded.count(letter) for letter in language.letters)

    found = [(sureness(language), language) for language in known if language.script == script]
    return sorted(found, key=lambda item: -item[0])


def is_foreign(text: str, wanted: Language, known: Sequence[Language]) -> bool:
    """Whether a text is plainly not in the wanted language. Not if either can't be told."""
    if not wanted.name:
        return False
    script = script_of(text)
    if {script, wanted.script} <= {"kana", "han"}:
        return False
    if script and script != wanted.script:
        return True
    ranked = _ranked(text, known)
    own = next((sure for sure, language in ranked if language == wanted), 0)
    return bool(ranked) and ranked[0][0] >= own + PLAINLY
