"""Text from people, peers and models without what isn't text: escape sequences, control characters, bidi tricks."""

from __future__ import annotations

import re
import unicodedata

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS and other strings: titles, clipboards, links
    r"|\x1b[ -/]*[0-~]?"  # anything else that starts with ESC
)
_BREAKS = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_KEPT_FORMATS = frozenset("\u200c\u200d\u200e\u200f")
"""Joiners (emoji, Persian, Indic scripts) and plain direction marks; every other format character goes."""


def clean(text: str) -> str:
    """Take out of a text what isn't text.

    Returns:
        The text without escape sequences and control characters, tabs as four spaces, line ends as newlines, every
        other space as a plain one.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _BREAKS.sub("\n", _ESCAPES.sub("", text))
    return "".join(_shown(char) for char in text)


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
