"""What is shown when the swarm couldn't start, and while it stops."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from swarmtui.plaintext import many_lines
from swarmtui.ui.screens.window import Window


class FailedScreen(Window[None]):
    """The reason and the remedy; where another model may help, one can be chosen. Any other way out quits."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "another_model", "Another model"),
        Binding("q,escape,enter", "app.interrupt", "Quit"),
    ]

    class AnotherModel(Message):
        """The person wants to try again with another model."""

        def __init__(self, window: FailedScreen) -> None:
            super().__init__()
            self.window = window

    def __init__(self, text: str, *, another_model: bool = False) -> None:
        super().__init__()
        self._text = text
        self._another = another_model

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = Content("The swarm couldn't start")
            box.border_subtitle = Content("m another model · q quit" if self._another else "q quit")
            reason, _, remedy = many_lines(self._text).partition("\n")
            yield Static(Content.styled(reason, "$error"), classes="dialog-text")
            if remedy:
                yield Static(Content(remedy), classes="dialog-text")

    def action_another_model(self) -> None:
        if self._another:
            self.post_message(self.AnotherModel(self))


class LeavingScreen(Window[None]):
    """Shown while the agents say goodbye."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog leaving"):
            yield Static(Content("The agents say goodbye …"))
            yield Static(Content.styled("ctrl+c doesn't wait for them", "$text-muted"))
