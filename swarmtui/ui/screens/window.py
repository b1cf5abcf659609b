"""What every window over the main screen has in common."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

T = TypeVar("T")


class Window(ModalScreen[T]):
    """A window that is left once: keys typed fast may still reach it when it has gone.

    Textual would take a second goodbye for that of the screen below, and end with none left.
    """

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Leave with a result; does nothing if the window has been left."""
        return super().dismiss(result) if self.is_current else AwaitComplete()
