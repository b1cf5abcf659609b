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
AT_HOME = 4
"""Other scripts than the Latin one take up names in Latin letters: one letter in so many of their own is enough."""
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
    also: str = ""
    """Other letters of it, which don't tell it as they're as much another's: in a text in it they don't tell that."""
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
    return _most(_scripts(text))


def _scripts(text: str) -> Counter[str]:
    """How many letters of a text are of which script."""
    counts: Counter[str] = Counter()
    for char in text:
        if char.isalpha():
            code = ord(char)
            counts[next((name for name, low, high in _SCRIPTS if low <= code <= high), "")] += 1
    return counts


def _most(counts: Counter[str]) -> str:
    if not counts:
        return ""
    if counts["kana"] * KANA_SHARE >= counts["kana"] + counts["han"] > counts.total() // 2:
        return "kana"
    return counts.most_common(1)[0][0]


def language_of(text: str, known: Sequence[Language], more: str = "") -> Language:
    """The language of a text; UNKNOWN if no one of the known ones stands out.

    Args:
        text: looked at first.
        known: the languages there are.
        more: text that decides between those that are alike likely by then.
    """
    script = script_of(text)
    likely = [language for language in known if language.script == script]
    for part in (text, more):
        likely = _surest(part, likely)
    return likely[0] if len(likely) == 1 else UNKNOWN


def _surest(text: str, languages: Sequence[Language]) -> list[Language]:
    """Those of which there are most signs."""
    sure = _sureness(text, languages)
    return [language for one, language in zip(sure, languages, strict=True) if one == max(sure)]


def _sureness(text: str, languages: Sequence[Language], but: str = "") -> list[int]:
    """How much there is in a text that tells each language, leaving some letters out."""
    folded = text.casefold()
    said = Counter(_WORD.findall(folded))
    return [
        sum(said[word] for word in language.words)
        + LETTER_WEIGHT * sum(folded.count(letter) for letter in language.letters if letter not in but)
        for language in languages
    ]


def is_foreign(text: str, wanted: Language, known: Sequence[Language]) -> bool:
    """Whether a text is plainly not in the wanted language. Not if either can't be told."""
    if not wanted.name:
        return False
    counts = _scripts(text)
    script = _most(counts)
    if {script, wanted.script} <= {"kana", "han"}:
        return False
    if script and script != wanted.script:
        kin = ("kana", "han") if wanted.script == "kana" else (wanted.script,)
        return wanted.script == "latin" or sum(counts[each] for each in kin) * AT_HOME < counts.total()
    (own,) = _sureness(text, [wanted])
    others = [each for each in known if each.script == script and each != wanted]
    return max(_sureness(text, others, wanted.letters + wanted.also), default=0) >= own + PLAINLY
