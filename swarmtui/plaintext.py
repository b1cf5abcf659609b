"""Text from people, peers and models, made safe to show: no escape sequences, no control characters, no bidi tricks."""

from __future__ import annotations

import functools
import re

from swarmtui.plan.cleaning import clean

__all__ = ["clean", "many_lines", "one_line", "removed"]

_UNSTEADY = re.compile("(?<=[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f])\u200d|\ufe0f")
"""Joiners between emoji and the mark that makes a sign an emoji: some terminals draw one wide sign, some several."""


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


def removed(text: str) -> int:
    """Return how many characters :func:`clean` leaves out (line ends and tabs don't count)."""
    spared = text.replace("\r\n", "\n").replace("\t", "    ")
    return max(0, len(spared) - len(clean(text)))
