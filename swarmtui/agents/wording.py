"""Plain looks at texts: which words they hold, how much two of them share, where to cut one. No model, no language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_WORD = re.compile(r"\w+", re.UNICODE)
_SENTENCE_END = re.compile(r"[.!?…](?:[\"'”’)\]]*)(?=\s|$)|[。！？](?:[」』）”’]*)|\n")
_NO_END = re.compile(
    r"(?:^|\s)(?:\d{1,3}|[^\W\d_]|(?:[^\W\d_]\.)+[^\W\d_]|mrs?|dr|st|vs|approx|etc|ca|bzw|usw|nr|no)\.$", re.I
)
"""A full stop that ends no sentence: a list's number, an initial, an abbreviation."""
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
"""Scripts that don't part words by spaces: their letters are taken in pairs."""

BYTES_PER_TOKEN = 4.2
"""Of English text."""

_COMMON = """
a an and any are as at be by for from have in into is it its of on or our that the their then this to up will with you
your der die das den dem des ein eine einen und für von zu im am mit auf
le la les un une des de du et pour à en dans
el los las y para con del
"""
_COMMON_WORDS = frozenset(_COMMON.split())


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """The words of a text that say something: folded, without the commonest ones unless there are no others."""
    found = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    parts: list[str] = []
    for word in found:
        if _UNSPACED.search(word) and len(word) > 2:
            parts.extend(word[i : i + 2] for i in range(len(word) - 1))
        else:
            parts.append(_stem(word))
    telling = frozenset(part for part in parts if part not in _COMMON_WORDS)
    return telling or frozenset(parts)


def _stem(word: str) -> str:
    """Take off an English plural, so that "lists" and "list" are one word."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def is_form_of(word: str, other: str) -> bool:
    """Whether two words begin alike for four letters or more and end differently by a few: plan and planning."""
    shorter, longer = sorted((len(word), len(other)))
    begin = max(4, shorter - 1)
    return word == other or (word[:begin] == other[:begin] and longer - begin <= 4)


def shared(first: str, second: str) -> float:
    """How much two texts have in common: shared words over the words of the shorter, 0 to 1."""
    one, two = words(first), words(second)
    if not one or not two:
        return 0.0
    return len(one & two) / min(len(one), len(two))


def covered(text: str, by: str) -> float:
    """The share of the words of `text` that stand in `by`, 0 to 1."""
    wanted = words(text)
    return len(wanted & words(by)) / len(wanted) if wanted else 0.0


def nats(text: str, mean: float) -> float:
    """The log probability of a whole text, from the mean per token: models tell no token counts, so they're reckoned
    from its bytes, which makes models with other vocabularies comparable."""
    return mean * len(text.encode()) / BYTES_PER_TOKEN


def one_line(text: str) -> str:
    """The text without line breaks, control characters and doubled spaces."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def clean(text: str) -> str:
    """The text without control characters (line breaks stay), trailing blanks and runs of blank lines."""
    kept = "".join(c for c in text.replace("\r\n", "\n").replace("\t", "    ") if c == "\n" or c.isprintable())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in kept.split("\n"))).strip()


def cut(text: str, limit: int) -> str:
    """At most `limit` characters of a text, cut after a sentence if one ends in the second half, else after a word."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    ends = _ends(head)
    if ends and ends[-1] >= limit // 2:
        return head[: ends[-1]].rstrip()
    return (head.rsplit(None, 1)[0] if " " in head[limit // 2 :] else head).rstrip()


def to_last_sentence(text: str) -> str:
    """Drop an unfinished last sentence, if that leaves at least a third of the text."""
    ends = _ends(text)
    return text[: ends[-1]].rstrip() if ends and ends[-1] >= len(text) // 3 else text


def without_loops(text: str, most: int = 2) -> str:
    """Leave out a line (or a sentence of a one-line text) that was already said `most` times: small models loop."""
    if "\n" not in text:
        parts = sentences(text)
        few = _few(parts, most)
        # Unspaced scripts stay unspaced; a text without a loop stays as it was.
        return text if len(few) == len(parts) else (" " if " " in text else "").join(few)
    return "\n".join(_few(text.split("\n"), most))


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with its end; line breaks end one too."""
    found, start = [], 0
    for end in [*_ends(text), len(text)]:
        if part := text[start:end].strip():
            found.append(part)
        start = end
    return found


def is_whole(text: str) -> bool:
    """Whether a text ends as a sentence does."""
    text = text.rstrip()
    ends = _ends(text)
    return bool(ends) and ends[-1] == len(text)


def _ends(text: str) -> list[int]:
    """Where sentences and lines end."""
    ends = []
    for match in _SENTENCE_END.finditer(text):
        before = text[max(0, match.start() - 16) : match.start() + 1]
        if not (match[0].startswith(".") and _NO_END.search(before)):
            ends.append(match.end())
    return ends


def _few(parts: Iterable[str], most: int) -> list[str]:
    seen: dict[str, int] = {}
    kept: list[str] = []
    for part in parts:
        key = " ".join(part.casefold().split())
        seen[key] = seen.get(key, 0) + 1
        if not key or seen[key] <= most:
            kept.append(part)
    return kept
