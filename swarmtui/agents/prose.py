"""What a model wrote, without what it says around it: greetings, first person, Markdown noise, numbering. Pure.

Which words open such a sentence is data (`executor.toml`), so that other languages can be added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .wording import clean, covered, is_whole, one_line, sentences, shared, words

MARK = re.compile(
    r"^\s*(?:[-*•–+]\s+(?:\[[ xX]?\]\s*)?|\(?\d{1,2}[.):]\s+|[☐□✓✔]\s*|\[[ xX]?\]\s+|[（(]?\d{1,2}[)）]\s*)+"
)
"""What stands before an item of a list."""
_FENCE = re.compile(r"^\s*```\w*\s*$")
_HEADING = re.compile(r"^\s*#{1,6}\s+(.*?)\s*#*\s*$")
_EMPHASIS = re.compile(r"(\*\*|__|`)(.+?)\1")
_STRAY = re.compile(r"\*\*|__|`")
_EMPTY = re.compile(r"^[\W\d_]*$")
LATIN = 0x2FFF
"""Characters above it part no words by blanks."""
SAME_SENTENCE = 0.8
LONGEST_ITEM = 240
SHORTEST_ITEM = 3
"""Words of an item, fewer say nothing (in unspaced scripts: pairs of letters)."""


def starts_with(text: str, beginnings: Iterable[str]) -> bool:
    """Whether a text begins with one of these, as whole words, whatever the case.

    A single word ("Sure") has to stand for itself, before a comma or the like: it may be the first of a sentence that
    says something.
    """
    folded = one_line(text).casefold().replace("’", "'").lstrip("*_#>\"“'(- ")
    for beginning in beginnings:
        rest = folded.removeprefix(beginning.casefold())
        if rest == folded:
            continue
        if not beginning.isalpha():
            if not rest or not rest[0].isalpha() or not beginning[-1].isalpha():
                return True
        elif not rest or rest[0] in ",.!:;、。！：" or ord(beginning[0]) > LATIN or folded.endswith((":", "：")):
            return True
    return False


def plain(text: str, openers: Sequence[str], closers: Sequence[str], title: str = "") -> str:
    """A model's answer without a fence around it, greeting, offer of more help, or its task as a heading.

    Args:
        text: as it came.
        openers: beginnings of sentences that only introduce.
        closers: beginnings of sentences that only take leave.
        title: of the task; a first line that says just this goes.
    """
    lines = [line for line in clean(text).split("\n") if not _FENCE.match(line)]
    while lines and (not lines[0].strip() or _introduces(lines[0], openers, title)):
        lines = lines[1:]
    if lines and not MARK.match(lines[0]):
        first = sentences(lines[0])
        while len(first) > 1 and starts_with(first[0], openers):
            first = first[1:]
            lines[0] = " ".join(first)
    while lines and (not lines[-1].strip() or starts_with(MARK.sub("", lines[-1]), closers)):
        lines = lines[:-1]
    if lines:
        last = sentences(lines[-1])
        while len(last) > 1 and starts_with(last[-1], closers):
            last = last[:-1]
            lines[-1] = " ".join(last)
    return "\n".join(lines).strip()


def _introduces(line: str, openers: Sequence[str], title: str) -> bool:
    """Whether a first line only leads to what follows."""
    bare = unmarked(line)
    if not bare:
        return True
    if title and len(bare) <= 2 * len(title) + 10 and covered(bare, title) == 1.0 and covered(title, bare) >= 0.75:
        return True
    return starts_with(bare, openers) and (bare.endswith((":", "：")) or len(sentences(bare)) == 1)


def unmarked(line: str) -> str:
    """One line of Markdown as plain words: no list mark, heading, bold or code."""
    heading = _HEADING.match(line)
    text = MARK.sub("", heading[1] if heading else line, count=1)
    return one_line(_STRAY.sub("", _EMPHASIS.sub(r"\2", text))).strip(" *_")


def items_of(text: str, was_cut: bool) -> list[str]:
    """The points of an answer, each a line of plain words: its list items, or its sentences where it has no list.

    Args:
        text: cleaned by :func:`plain`.
        was_cut: it reached its limit, so the last point may be unfinished.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    marked = [line for line in lines if MARK.match(line)]
    if len(marked) >= 2:
        found = [unmarked(line) for line in (lines[lines.index(marked[0]) :])]
    else:
        found = [part for line in lines for part in sentences(unmarked(line))]
    if was_cut and found and not is_whole(found[-1]):
        found = found[:-1]
    # A heading with nothing after it, or a bare number.
    return [item for item in found if not item.endswith((":", "：")) and not _EMPTY.match(item)]


def tidied(item: str, task: str, links: Sequence[str]) -> str:
    """A point as an instruction: without "To do this task," and "Next," before it.

    Args:
        item: one line.
        task: the goal and the task's titles: an opening that says only this goes.
        links: words that join sentences.
    """
    text = item
    for _ in range(3):
        before = text
        for link in links:
            if starts_with(text, [link]) and text[len(link) : len(link) + 1] in (",", "、", "，"):
                text = text[len(link) + 1 :].strip()
        head, comma, rest = text.partition(", ")
        if (
            comma
            and head.casefold().startswith(("to ", "um ", "pour ", "para ", "per "))
            and covered(head[3:], task) >= 0.6
        ):
            text = rest.strip()
        if text == before:
            break
    return text[:1].upper() + text[1:] if text else item


def says_enough(item: str, others: Sequence[str]) -> bool:
    """Whether a point is long enough, not endless, and not one that stands already."""
    if len(words(item)) < SHORTEST_ITEM or len(item) > LONGEST_ITEM:
        return False
    return not any(shared(item, other) >= SAME_SENTENCE for other in others)
