"""Text from people, peers and models, made safe to show: no escape sequences, no control characters, no bidi tricks."""

from __future__ import annotations

import functools
import re
import unicodedata

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS and other strings: titles, clipboards, links
    r"|\x1b[ -/]*[0-~]?"  # anything else that starts with ESC
)
_BREAKS = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNSTEADY = re.compile("(?<=[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f])\u200d|\ufe0f")
"""Joiners between emoji and the mark that makes a sign an emoji: some terminals draw one wide sign, some several."""
_KEPT_FORMATS = frozenset("\u200c\u200d\u200e\u200f")
"""Joiners (emoji, Persian, Indic scripts) and plain direction marks; every other format character goes."""


@functools.lru_cache(maxsize=4096)
def one_line(text: str) -> str:
    """Make text fit for one line of a terminal.

    Returns:
        The text without escape sequences and control characters; every run of white space is one space.
    """
    return " ".join(many_lines(text).split())


def many_lines(text: str) -> str:
    """Make text fit for several lines of a terminal.

    Returns:
        As :func:`clean`, with emoji taken apart whose width terminals don't agree on.
    """
    return _UNSTEADY.sub("", clean(text))


def clean(text: str) -> str:
    """Take out of a text what isn't text.

    Returns:
        The text without escape sequences and control characters, tabs as four spaces, line ends as newlines.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _BREAKS.sub("\n", _ESCAPES.sub("", text))
    return "".join(_shown(c) for c in text)


def _shown(char: str) -> str:
    if char.isprintable() or char == "\n":
        return char
    if char == "\t":
        return "    "
    category = unicodedata.category(char)
    if category == "Cs":
        return "\N{REPLACEMENT CHARACTER}"
    if category == "Zs":
        return " "
    if category == "Cf":
        return char if char in _KEPT_FORMATS else ""
    return "" if category == "Cc" else char  # private or newer than this Python's tables


def removed(text: str) -> int:
    """Return how many characters :func:`clean` leaves out (line ends and tabs don't count)."""
    spared = text.replace("\r\n", "\n").replace("\t", "    ")
    return max(0, len(spared) - len(clean(text)))
