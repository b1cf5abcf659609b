"""Small pieces of styled text. All of it is :class:`textual.content.Content`, never markup."""

from __future__ import annotations

import time
from collections.abc import Sequence

from textual.content import Content

from swarmtui.plaintext import many_lines, one_line

DIM = "$text-muted"
FAINT = "$text-disabled"

_BARS = "▁▂▃▄▅▆▇█"


def line(text: str, style: str = "") -> Content:
    """Return foreign text as one safe line."""
    return Content.styled(one_line(text), style) if style else Content(one_line(text))


def paragraph(text: str, width: int, style: str = "", indent: int = 0) -> list[Content]:
    """Wrap foreign text to lines of at most `width` cells, each indented by `indent`."""
    content = Content.styled(many_lines(text), style) if style else Content(many_lines(text))
    pad = " " * indent
    return [Content.assemble(pad, part) for part in content.wrap(max(8, width - indent))]


def join(*parts: Content | tuple[str, str] | str, gap: str = "  ") -> Content:
    """Put the parts that aren't empty side by side."""
    made = [Content.assemble(part) if not isinstance(part, Content) else part for part in parts]
    return Content(gap).join([part for part in made if part.plain])


def sides(left: Content, right: Content, width: int, keep: float = 0.5) -> Content:
    """Put two texts at the two ends of a line; the right one gives way first, down to `keep` of the width.

    Returns:
        Exactly `width` cells.
    """
    if width <= 0:
        return Content("")
    if not right.plain:
        return left.truncate(width, ellipsis=True, pad=True)
    room = max(width - left.cell_length - 2, int(width * keep) - 2)
    if room < 4:
        return left.truncate(width, ellipsis=True, pad=True)
    right = right.truncate(room, ellipsis=True)
    left = left.truncate(width - right.cell_length - 2, ellipsis=True, pad=True)
    return Content.assemble(left, "  ", right).truncate(width, pad=True)


def column(text: str, width: int, style: str = "") -> Content:
    """Return foreign text cut or padded to exactly `width` cells."""
    return line(text, style).truncate(width, ellipsis=True, pad=True)


def age(seconds: float) -> str:
    """Say how long something has lasted: '41 s', '3 min', '2 h', '4 d'."""
    seconds = max(0.0, seconds)
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6_000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"


def clock(at: float) -> str:
    """Return the local time of day, with seconds."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def day(at: float) -> str:
    """Return the local date and time of day, without seconds."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def sparkline(values: Sequence[float], width: int) -> str:
    """Draw the last `width` values with one block each; an idle swarm is a flat line."""
    values = list(values)[-width:]
    top = max(values, default=0.0)
    if top <= 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[min(7, round(v / top * 7))] for v in values)


def bar(mark: float, width: int = 8) -> Content:
    """Draw a mark from 0 to 100 as a bar."""
    full = max(0, min(width, round(mark / 100 * width)))
    return Content.assemble(("█" * full, "$secondary"), ("░" * (width - full), FAINT))
