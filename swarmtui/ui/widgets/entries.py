"""Entries for text. Their keys are handled in the order in which they are typed.

Textual puts a character into an entry at once, but carries out backspace, home and the like only when the key has gone
up through all that the entry lies in. Typed fast, or on a busy machine, "no⌫ew" would become "ne".
"""

from __future__ import annotations

from rich.cells import cell_len
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, TextArea


async def _own_key(entry: Widget, event: events.Key) -> bool:
    """Carry out a key that is the entry's own; False if it isn't, or if it does nothing there."""
    for binding in entry._bindings.key_to_bindings.get(event.key, ()):
        if await entry.app.run_action(binding.action, entry):
            event.stop()
            event.prevent_default()
            return True
    return False


class LineEntry(Input):
    """An entry of one line."""

    def on_resize(self) -> None:
        """Show where the cursor is. Textual scrolls to the end of a long text before it knows how much fits."""
        at = cell_len(self.value[: self.cursor_position])
        self.scroll_to_region(Region(at, 0, 1, 1), force=True, animate=False)

    async def _on_key(self, event: events.Key) -> None:
        if not await _own_key(self, event):
            await super()._on_key(event)


class TextEntry(TextArea):
    """Several lines of text: enter hands them in, ctrl+j or shift+enter makes a new line."""

    class Entered(Message):
        """Enter was pressed."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key in ("enter", "ctrl+j", "shift+enter", "alt+enter"):
            event.stop()
            event.prevent_default()
            if event.key == "enter":
                self.post_message(self.Entered())
            else:
                self.insert("\n")
        elif not await _own_key(self, event):
            await super()._on_key(event)
