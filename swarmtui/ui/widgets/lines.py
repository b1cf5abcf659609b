"""A list of lines of any length: only what is visible is drawn, and nothing jumps when the lines change."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import BindingsMap
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from swarmtui.ui.actions import Keys


class Lines(ScrollView, can_focus=True):
    """A cursor over keyed lines.

    A subclass gives the keys (one per line, unique) with :meth:`show` and draws a line on demand in :meth:`draw`. The
    cursor stays with its key and its key stays on its row of the screen, whatever comes and goes above it.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--cursor", "lines--hint"}
    HINT: ClassVar[str] = ""
    """What stands where no lines are, with the names of actions in the places of their keys."""

    class Moved(Message):
        """The cursor stands on another key."""

        def __init__(self, lines: Lines, key: Hashable | None) -> None:
            super().__init__()
            self.lines = lines
            self.key = key

        @property
        def control(self) -> Lines:
            return self.lines

    class Chosen(Moved):
        """The person pressed enter (or clicked twice) on a key."""

    def __init__(self, keys: Keys, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        # The person's own keys. Bindings, not on_key: so keys typed fast are handled in the order in which they came.
        self._bindings = BindingsMap(keys.list_bindings())
        self.keys: Sequence[Hashable] = ()
        self.cursor = 0
        self._hint = keys.fill(self.HINT)
        self._places: dict[Hashable, int] = {}

    # What a subclass says

    def draw(self, index: int, width: int) -> Content:
        """Return the line at `index`, at most `width` cells wide."""
        raise IndexError(index)

    def selected(self, index: int) -> bool:
        """Say whether the cursor's colour covers this line."""
        return index == self.cursor

    # What others ask

    @property
    def key(self) -> Hashable | None:
        """The key under the cursor; None without lines."""
        return self.keys[self.cursor] if self.cursor < len(self.keys) else None

    def show(self, keys: Sequence[Hashable]) -> None:
        """Replace the lines; cursor and scroll stay with what they were on."""
        if keys == self.keys:
            self.refresh()
            return
        before, old, row = self.key, self.cursor, self.cursor - self.scroll_offset.y
        places = {key: i for i, key in enumerate(keys)}
        previous = self.keys
        self.keys, self._places = keys, places
        if before is not None:
            self.cursor = self._nearest(previous, old)
        self.cursor = max(0, min(self.cursor, len(keys) - 1))
        self.virtual_size = Size(self.size.width, len(keys))
        if self.cursor != old:
            self.scroll_to(y=max(0, self.cursor - row), animate=False, force=True)
        self.refresh()
        if self.key != before:
            self.post_message(self.Moved(self, self.key))

    def _nearest(self, previous: Sequence[Hashable], old: int) -> int:
        """Return the place of the cursor's key, or of the line above it that is still there."""
        for i in range(min(old, len(previous) - 1), -1, -1):
            if (place := self._places.get(previous[i])) is not None:
                return place
        return 0

    def move_to(self, key: Hashable) -> bool:
        """Put the cursor on a key and bring it into sight; False if there is no such line."""
        place = self._places.get(key)
        if place is None:
            return False
        self._go(place)
        return True

    # Movement

    def _go(self, index: int) -> None:
        index = max(0, min(index, len(self.keys) - 1))
        if index != self.cursor:
            self.cursor = index
            self.refresh()
            self.post_message(self.Moved(self, self.key))
        self.reveal(index, index)

    def reveal(self, top: int, bottom: int) -> None:
        """Scroll as little as needed to show these lines."""
        height, y = self.size.height, self.scroll_offset.y
        if top < y or bottom - top >= height:
            self.scroll_to(y=top, animate=False, force=True)
        elif bottom >= y + height:
            self.scroll_to(y=bottom - height + 1, animate=False, force=True)

    def action_down(self) -> None:
        self._go(self.cursor + 1)

    def action_up(self) -> None:
        self._go(self.cursor - 1)

    def action_first(self) -> None:
        self._go(0)

    def action_last(self) -> None:
        self._go(len(self.keys) - 1)

    def action_page_down(self) -> None:
        self._go(self.cursor + max(1, self.size.height // 2))

    def action_page_up(self) -> None:
        self._go(self.cursor - max(1, self.size.height // 2))

    def action_choose(self) -> None:
        if self.keys:
            self.post_message(self.Chosen(self, self.key))

    def action_left(self) -> None:
        """Nothing stands to the left of a plain list."""

    def action_right(self) -> None:
        """Nothing stands to the right of a plain list."""

    def action_fold(self) -> None:
        """A plain list has nothing to fold."""

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or offset.y + self.scroll_offset.y >= len(self.keys):
            return
        self._go(offset.y + self.scroll_offset.y)
        if event.chain == 2:
            self.action_choose()

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self.keys))
        if self.keys:
            self.reveal(self.cursor, self.cursor)

    # Drawing

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        index = y + self.scroll_offset.y
        if not self.keys:
            return self._hint_line(y, width)
        if index >= len(self.keys):
            return Strip.blank(width, self.rich_style)
        selected = self.selected(index)
        style = self.get_visual_style("lines--cursor") if selected else self.visual_style
        content = self.draw(index, width).truncate(width, ellipsis=True, pad=True)
        strips = Visual.to_strips(self, content, width, 1, style)
        return strips[0] if strips else Strip.blank(width, self.rich_style)

    def _hint_line(self, y: int, width: int) -> Strip:
        lines = Content(self._hint).wrap(max(8, width - 4)) if self._hint else []
        top = max(0, (self.size.height - len(lines)) // 3)
        if not top <= y < top + len(lines):
            return Strip.blank(width, self.rich_style)
        content = Content(lines[y - top].plain.strip()).center(width).truncate(width, pad=True)
        return Visual.to_strips(self, content, width, 1, self.get_visual_style("lines--hint"))[0]
