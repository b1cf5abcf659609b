"""Text from people, peers and models as CommonMark that can't change the document around it.

Two ways in: :func:`inline` for titles and names, where nothing is markup, and :func:`block` for results, which may
hold paragraphs, lists, emphasis, code spans and fenced code. What a result must not bring is turned into plain text:
headings become bold lines, fences are closed, and HTML, links and images are shown as they were typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .cleaning import clean

_MARKS = re.compile(r"([\\`*_\[\]<>#~|&!])")

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*([A-Za-z0-9+_-]*)")
_HEADING = re.compile(r"^\s*#{1,6}\s+(.*?)[\s#]*$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])\s+(\S.*)$")
_UNDERLINE = re.compile(r"^\s*(?:=+|-{2,})\s*$")
_RULE = re.compile(r"^\s*(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$")
_OPENER = re.compile(r"^(?:[#>=]|[-+*](?=\s|$)|-(?=-+\s*$)|\*(?=[*\s]+$)|_(?=[_\s]+$)|~(?=~~))")
_NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_TOKEN = re.compile(
    r"(?P<kept>\\[!-/:-@\[-`{-~])"  # an escape that the writer made
    r"|(?P<code>(?<!`)(?P<ticks>`+)(?!`)[^`\n](?:.*?[^`])??(?P=ticks)(?!`))"
    r"|(?P<mark>[\\`<\[\]])"
)


def inline(text: str) -> str:
    """Return text for one line in which nothing is markup; '(blank)' if nothing can be seen in it."""
    return _MARKS.sub(r"\\\1", " ".join(clean(text).split())) or "(blank)"


def block(text: str) -> list[str]:
    """Return lines that stand for themselves: put a blank line before and after them.

    No line is blank at either end, and there are no headings, HTML, links, open fences or thematic breaks in them.
    They may be indented as a whole, to stand inside a list item.
    """
    out: list[str] = []
    columns: list[tuple[int, int]] = []  # of the open list items: (indent as written, where our text begins)
    lines = iter(_Ahead(clean(text).split("\n")))
    for line, following in lines:
        if fence := _FENCE.match(line):
            columns.clear()
            _gap(out)
            out += _fenced(fence, lines)
            _gap(out)
        elif not line.strip() or _RULE.match(line):
            columns.clear()
            _gap(out)
        elif heading := _HEADING.match(line):
            columns.clear()
            _bold(out, heading[1])
        elif item := _ITEM.match(line):
            out.append(_list_item(item, columns))
        elif _UNDERLINE.match(following) and not columns:
            next(lines, None)
            _bold(out, line)
        else:
            out.append(" " * (columns[-1][1] if columns else 0) + _start(_marks(line.strip())))
    while out and not out[-1]:
        out.pop()
    return out


class _Ahead:
    """Lines, each with the one that follows."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.lines, [*self.lines[1:], ""], strict=True)


def _gap(out: list[str]) -> None:
    if out and out[-1]:
        out.append("")


def _bold(out: list[str], text: str) -> None:
    words = inline(text.replace("*", "").replace("`", ""))
    _gap(out)
    out += [f"**{words}**", ""]


def _fenced(fence: re.Match[str], lines: Iterator[tuple[str, str]]) -> list[str]:
    """Take lines up to the closing fence or the end; return them inside a fence that none of them can close."""
    mark = fence[1]
    closing = re.compile(rf"^\s*{re.escape(mark[0])}{{{len(mark)},}}\s*$")
    inside: list[str] = []
    for line, _ in lines:
        if closing.match(line):
            break
        inside.append(line.rstrip())
    longest = max((len(run) for line in inside for run in re.findall("`+", line)), default=0)
    own = "`" * max(3, longest + 1)
    return [own + fence[2], *inside, own]


def _list_item(item: re.Match[str], columns: list[tuple[int, int]]) -> str:
    """Return an item indented to where its parent's text begins, and note where its own does."""
    indent = len(item[1])
    while columns and columns[-1][0] >= indent:
        columns.pop()
    column = columns[-1][1] if columns else 0
    columns.append((indent, column + len(item[2]) + 1))
    return " " * column + f"{item[2]} {_start(_marks(item[3].rstrip()))}"


def _marks(line: str) -> str:
    """Escape what could be HTML, a link or half a code span; keep emphasis, whole code spans and written escapes."""
    return _TOKEN.sub(lambda found: "\\" + found[0] if found["mark"] else found[0], line)


def _start(line: str) -> str:
    """Escape a beginning that would open another kind of block."""
    if _OPENER.match(line):
        return "\\" + line
    return _NUMBER.sub(r"\1\\\2", line)
