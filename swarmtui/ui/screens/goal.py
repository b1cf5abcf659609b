"""The window that asks for a goal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static, TextArea

from swarmtui.goals import MAX_GOAL, GoalText, parse_goal
from swarmtui.ui.screens.dialogs import Field, Form
from swarmtui.ui.text import DIM, line
from swarmtui.ui.widgets.bars import Bar

TELL_S = 0.5
"""What will work on the goal is told anew this often."""


class GoalForm(Form):
    """Asks for a goal, shows how it'll be taken and what will work on it."""

    def __init__(self, told: Callable[[], list[tuple[str, str]]], text: str = "") -> None:
        """Make the form.

        Args:
            told: gives (name, text) pairs of what will work on the goal: model, preset, agents. Asked again and
                again, since agents come and go while a person writes.
            text: What stands in the entry at first.
        """
        hint = "e.g. Plan a two-week trip to Japan"
        super().__init__(
            "New goal",
            (Field("goal", "", text, "text", hint),),
            _problem,
            intro="What should the swarm plan? The first line becomes the title; ctrl+j begins a new line.",
            verb="start",
        )
        self._told = told

    def compose_more(self) -> ComposeResult:
        yield Static("", id="goal-preview", markup=False)
        yield Bar("", id="goal-told", markup=False)

    def on_mount(self) -> None:
        super().on_mount()
        self._tell()
        self.set_interval(TELL_S, self._tell)

    def _tell(self) -> None:
        rows = [Content.assemble((f"{name:<8}", DIM), line(text)) for name, text in self._told() if text]
        self.query_one("#goal-told", Bar).put(Content("\n").join(rows), resizes=True)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self.show_error("")
        preview = self.query_one("#goal-preview", Static)
        text = event.text_area.text
        if not text.strip():
            preview.update(Content(""))
            return
        try:
            preview.update(_preview(parse_goal(text)))
        except ValueError as error:
            preview.update(Content.styled(str(error), "$warning"))


def _problem(values: Mapping[str, str]) -> str:
    try:
        parse_goal(values["goal"])
    except ValueError as error:
        return str(error)
    return ""


def _preview(goal: GoalText) -> Content:
    """Say how the text will be taken, only when that isn't plain."""
    if not goal.detail and not goal.note:
        return Content("")
    parts = [Content.assemble(("title   ", DIM), line(goal.title))]
    if goal.detail:
        parts.append(Content.assemble(("detail  ", DIM), f"{len(goal.detail):,} of {MAX_GOAL:,} characters"))
    if goal.note:
        parts.append(Content.styled(goal.note, "$secondary"))
    return Content("\n").join(parts)
