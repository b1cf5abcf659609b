"""Full-screen pages to read: help and the gossip log."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from swarmtui.plan.ops import TaskId
from swarmtui.ui.actions import Keys, shown
from swarmtui.ui.screens.window import Window
from swarmtui.ui.states import LEGEND, ROLES
from swarmtui.ui.text import DIM
from swarmtui.ui.widgets.bars import gossip_row
from swarmtui.ui.widgets.lines import Lines
from swarmtui.view import GossipLine, SwarmView


class TextLines(Lines):
    """Fixed text to scroll through, wrapped to the width there is."""

    def __init__(self, keys: Keys, lines: Callable[[int], list[Content]]) -> None:
        super().__init__(keys)
        self._lines = lines
        self._text: list[Content] = []

    def on_mount(self) -> None:
        self.focus()

    def on_resize(self) -> None:
        self._text = self._lines(self.size.width - 1)
        self.show(range(len(self._text)))
        super().on_resize()

    def draw(self, index: int, width: int) -> Content:
        return self._text[index]

    def selected(self, index: int) -> bool:
        return False

    def _go(self, index: int) -> None:
        step = index - self.cursor
        self.scroll_to(y=self.scroll_offset.y + step, animate=False, force=True)


class Help(Window[None]):
    """All keys, from the table, and what the glyphs mean."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss", "Close")]

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog reading") as box:
            box.border_title = Content("Keys and glyphs")
            box.border_subtitle = Content("↑↓ scroll · esc close")
            yield TextLines(self._keys, lambda width: help_lines(self._keys, width))


def help_lines(keys: Keys, width: int) -> list[Content]:
    """Return the help as lines of at most this width, one group of keys after the other."""
    groups: dict[str, list[Content]] = {}
    for action in keys.actions:
        names = " ".join(shown(key) for key in action.keys)
        head = Content.styled(f"  {names:<17}", "bold $accent")
        groups.setdefault(action.group, []).extend(_beside(head, Content(action.help), width))
    lines: list[Content] = []
    for name, rows in groups.items():
        lines += [Content.styled(name, "bold"), *rows, Content("")]
    lines.append(Content.styled("Glyphs of tasks", "bold"))
    for face, text in LEGEND:
        head = Content.styled(f"  {face.glyph} {face.word:<15}", face.colour)
        lines += _beside(head, Content.styled(keys.fill(text), DIM), width)
    lines += [Content(""), Content.styled("Letters of agents", "bold")]
    lines.append(
        Content("").join(
            [Content(""), *(Content.assemble((letter, f"bold {c}"), f" {r}") for r, (letter, c) in ROLES.items())]
        )
    )
    return lines


def _beside(head: Content, text: Content, width: int) -> list[Content]:
    """Return a text in a column of its own beside its head."""
    pad = " " * head.cell_length
    first, *rest = text.wrap(max(8, width - head.cell_length))
    return [Content.assemble(head, first), *(Content.assemble(pad, part) for part in rest)]


class GossipList(Lines):
    """The sentences of the swarm, newest at the bottom; stays at the bottom while the cursor is there."""

    HINT: ClassVar[str] = "Nothing has been said yet."

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        self._items: dict[tuple[float, str], GossipLine] = {}

    def update_gossip(self, items: tuple[GossipLine, ...]) -> None:
        """Show these sentences."""
        at_end = not self.keys or self.cursor == len(self.keys) - 1
        self._items = {(item.at, item.text): item for item in items}
        self.show(tuple(self._items))
        if at_end:
            self.call_after_refresh(self.action_last)

    def item(self) -> GossipLine | None:
        """Return the sentence under the cursor."""
        return self._items.get(self.key) if isinstance(self.key, tuple) else None

    def draw(self, index: int, width: int) -> Content:
        key = self.keys[index]
        return gossip_row(self._items[key], width) if isinstance(key, tuple) else Content("")


class GossipLog(Window[TaskId | None]):
    """Everything said lately; enter goes to the task that a sentence is about."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,l", "close", "Close")]

    def __init__(self, keys: Keys, latest: Callable[[], SwarmView]) -> None:
        super().__init__()
        self._keys = keys
        self._latest = latest
        self._version = -1

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog reading") as box:
            box.border_title = Content("Gossip")
            box.border_subtitle = Content("↑↓ move · enter go to the task · esc close")
            yield GossipList(self._keys)

    def on_mount(self) -> None:
        self._refresh()
        self.query_one(GossipList).focus()
        self.set_interval(0.2, self._refresh)

    def _refresh(self) -> None:
        view = self._latest()
        if view.version != self._version:
            self._version = view.version
            self.query_one(GossipList).update_gossip(view.gossip)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        event.stop()
        item = self.query_one(GossipList).item()
        self.dismiss(item.task if item else None)

    def on_lines_moved(self, event: Lines.Moved) -> None:
        event.stop()

    def action_close(self) -> None:
        self.dismiss(None)
