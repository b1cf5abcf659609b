"""The window that asks for a model: the list of `swarmtui models`, narrowed by typing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from swarmtui.plaintext import many_lines, one_line
from swarmtui.plan.narrative import plural
from swarmtui.ui.screens.window import Window
from swarmtui.ui.text import DIM, FAINT, column, line, sides
from swarmtui.ui.widgets.entries import LineEntry
from swarmtui.view import ModelChoice

Find = Callable[[], Sequence[ModelChoice]]

MARGIN = 8
"""Cells that the window takes on both sides of a line together."""
WIDEST = 104


class ModelPicker(Window[ModelChoice | None]):
    """Asks for a model. Those that can't be used are grey, with the reason, and can't be chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("down", "move('cursor_down')", show=False),
        Binding("up", "move('cursor_up')", show=False),
        Binding("pagedown", "move('page_down')", show=False),
        Binding("pageup", "move('page_up')", show=False),
        # Priority: they're the entry's own keys, which have no use in one short word.
        Binding("ctrl+d", "move('page_down')", show=False, priority=True),
        Binding("ctrl+u", "move('page_up')", show=False, priority=True),
    ]

    def __init__(self, title: str, find: Find, first: Sequence[ModelChoice] = ()) -> None:
        """Make the window.

        Args:
            title: stands in the border: what the model is for.
            find: gives the models; called in a thread of its own, since it reads folders.
            first: what stands above those found.
        """
        super().__init__()
        self._title = title
        self._find = find
        self._first = tuple(first)
        self._found: tuple[ModelChoice, ...] | None = None
        self._shown: list[ModelChoice] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog picker") as box:
            box.border_title = Content(one_line(self._title))
            box.border_subtitle = Content("enter choose · esc cancel")
            yield LineEntry(
                placeholder="type to narrow, or a path or http://host:port/v1", id="picker-filter", compact=True
            )
            yield Static("", id="picker-head", markup=False)
            yield OptionList(id="picker-list", compact=True, markup=False)
            yield Static("", id="picker-about", markup=False)

    def on_mount(self) -> None:
        self.query_one("#picker-list", OptionList).can_focus = False
        self.query_one("#picker-filter", Input).focus()
        self._show()
        self.run_worker(self._look(), exit_on_error=False)

    async def _look(self) -> None:
        try:
            self._found = tuple(await asyncio.to_thread(self._find))
        except Exception as error:
            self._found = ()
            self.app.notify(f"The models can't be listed: {one_line(str(error))}", severity="error", markup=False)
        self._show()

    def on_resize(self, event: events.Resize) -> None:
        self._show()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._show()

    def _show(self) -> None:
        text = self.query_one("#picker-filter", Input).value.strip()
        words = text.casefold().split()
        everything = (*self._first, *(self._found or ()))
        self._shown = [each for each in everything if all(word in _searched(each) for word in words)]
        if "/" in text or "\\" in text:
            self._shown.insert(0, ModelChoice(spec=text, name=text, source="as typed"))
        width = min(self.app.size.width * 94 // 100, WIDEST) - MARGIN
        self.query_one("#picker-head", Static).update(_columns("", "", "quant", "size", "memory", width))
        options = self.query_one("#picker-list", OptionList)
        options.clear_options()
        options.add_options([Option(row(each, width), disabled=bool(each.problem)) for each in self._shown])
        usable = next((i for i, each in enumerate(self._shown) if not each.problem), None)
        options.highlighted = usable
        self._tell()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._tell()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._shown[event.option_index])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        chosen = self._chosen()
        if chosen is not None:
            self.dismiss(chosen)

    def _chosen(self) -> ModelChoice | None:
        index = self.query_one("#picker-list", OptionList).highlighted
        if index is None or index >= len(self._shown) or self._shown[index].problem:
            return None
        return self._shown[index]

    def _tell(self) -> None:
        """Say more about the model under the cursor, or why there's none."""
        chosen, about = self._chosen(), self.query_one("#picker-about", Static)
        if chosen is not None:
            about.update(Content.styled(many_lines(_about(chosen)), DIM))
        elif self._found is None:
            about.update(Content.styled("looking for models …", DIM))
        else:
            grey = sum(bool(each.problem) for each in self._shown)
            why = f"{plural(grey, 'model')} can't be used" if grey else "no model is called that"
            about.update(Content.styled(f"{why}. More: swarmtui models get REPO", "$warning"))

    def action_move(self, how: str) -> None:
        getattr(self.query_one("#picker-list", OptionList), f"action_{how}")()

    def action_cancel(self) -> None:
        self.dismiss(None)


def _searched(choice: ModelChoice) -> str:
    return f"{choice.name} {choice.quantisation} {choice.source}".casefold()


def _columns(name: str, style: str, quantisation: str, size: str, needs: str, width: int) -> Content:
    right = Content.assemble(column(quantisation, 8, DIM), f"{size:>8}", f"{needs:>9}")
    return sides(line(name, style), right.stylize(DIM), width, 0.5)


def row(choice: ModelChoice, width: int) -> Content:
    """Return a model's line, exactly `width` cells."""
    if choice.problem:
        return sides(line(choice.name, FAINT), line(choice.problem, FAINT), width, 0.4)
    if not choice.needs:
        return sides(line(choice.name), line(choice.source, DIM), width, 0.4)
    return _columns(choice.name, "", choice.quantisation, choice.size, choice.needs, width)


def _about(choice: ModelChoice) -> str:
    parts = [choice.source, f"context {choice.context:,} tokens" if choice.context else "", choice.note]
    return " · ".join(part for part in parts if part)


class ModelEntry(Static, can_focus=True):
    """An entry of a form that holds a model; enter opens the picker."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "pick", "Choose"),
        Binding("backspace,delete", "clear", "Usual"),
    ]

    class Picking(Message):
        """The person wants to choose."""

        def __init__(self, entry: ModelEntry) -> None:
            super().__init__()
            self.entry = entry

    def __init__(self, usual: str, *, id: str | None = None) -> None:
        """Make the entry; `usual` tells what is used when nothing is chosen."""
        super().__init__("", id=id, markup=False)
        self._usual = usual
        self.choice: ModelChoice | None = None

    @property
    def value(self) -> str:
        """The chosen model's spec; '' for the usual one."""
        return self.choice.spec if self.choice else ""

    def set(self, choice: ModelChoice | None) -> None:
        """Hold this; None or an empty spec: the usual one."""
        self.choice = choice if choice and choice.spec else None
        self._draw()

    def on_mount(self) -> None:
        self._draw()

    def watch_has_focus(self, focus: bool) -> None:
        super().watch_has_focus(focus)
        self._draw()

    def on_click(self) -> None:
        self.action_pick()

    def _draw(self) -> None:
        shown = line(self.choice.name) if self.choice else line(self._usual, DIM)
        self.update(Content.assemble(shown, ("   enter: choose", FAINT) if self.has_focus else ""))

    def action_pick(self) -> None:
        self.post_message(self.Picking(self))

    def action_clear(self) -> None:
        self.set(None)
