"""Small windows over the main screen: a question, a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Input, Select, Static, TextArea

from swarmtui.plaintext import many_lines, one_line
from swarmtui.ui.screens.picker import Find, ModelEntry, ModelPicker
from swarmtui.ui.screens.window import Window
from swarmtui.ui.widgets.entries import LineEntry, TextEntry
from swarmtui.view import ModelChoice


class Confirm(Window[bool]):
    """Asks before something that can't be undone. The default is No."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
        Binding("left,right,h,l", "app.focus_next", "Other"),
    ]

    def __init__(self, question: str, detail: str = "", yes: str = "Yes", no: str = "No") -> None:
        super().__init__()
        self._question = question
        self._detail = detail
        self._labels = (yes, no)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content.styled(one_line(self._question), "bold"), classes="dialog-text")
            if self._detail:
                yield Static(Content.styled(many_lines(self._detail), "$text-muted"), classes="dialog-text")
            with Horizontal(classes="dialog-buttons"):
                yield Button(Content(f"{self._labels[0]} (y)"), id="yes", variant="error", compact=True)
                yield Button(Content(f"{self._labels[1]} (n)"), id="no", compact=True)

    def on_mount(self) -> None:
        self.query_one("#no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


@dataclass(frozen=True)
class Field:
    """One entry of a form."""

    name: str
    label: str
    value: str = ""
    kind: Literal["line", "text", "choice", "model"] = "line"
    hint: str = ""
    """Shown in an empty entry."""
    options: tuple[tuple[str, str], ...] = ()
    """(shown, value) pairs of a choice."""


Values = dict[str, str]
Check = Callable[[Mapping[str, str]], str]


class Form(Window[Values | None]):
    """A window with entries. Enter hands it in when its check finds nothing wrong; esc leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("ctrl+s", "submit", "Hand in"),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self,
        title: str,
        fields: tuple[Field, ...],
        check: Check,
        *,
        intro: str = "",
        verb: str = "save",
        find: Find = tuple,
    ) -> None:
        """Make a form.

        Args:
            title: Stands in the border.
            fields: The entries, in order.
            check: Gets the values, returns what is wrong with them ('' if nothing).
            intro: A text above the entries.
            verb: What enter does.
            find: Gives the models for an entry of that kind.
        """
        super().__init__()
        self._title = title
        self._fields = fields
        self._check = check
        self._intro = intro
        self._verb = verb
        self._find = find

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog form") as box:
            box.border_title = Content(f"{one_line(self._title)}")
            box.border_subtitle = Content(f"enter {self._verb} · esc cancel")
            with VerticalScroll(classes="form-body", can_focus=False):
                if self._intro:
                    yield Static(Content.styled(many_lines(self._intro), "$text-muted"), classes="form-intro")
                for field in self._fields:
                    with Horizontal(classes=f"form-row {field.kind}"):
                        yield Static(Content(field.label), classes="form-label")
                        yield self._entry(field)
                yield from self.compose_more()
            yield Static("", id="form-error", markup=False)

    def compose_more(self) -> ComposeResult:
        """Add what stands below the entries."""
        yield from ()

    def _entry(self, field: Field) -> Widget:
        name = f"field-{field.name}"
        if field.kind == "choice":
            return Select(
                [(Content(shown), value) for shown, value in field.options],
                value=field.value,
                id=name,
                allow_blank=False,
                compact=True,
            )
        if field.kind == "model":
            return ModelEntry(field.hint, id=name)
        if field.kind == "text":
            return TextEntry(field.value, id=name, compact=True, placeholder=Content(field.hint), soft_wrap=True)
        return LineEntry(field.value, id=name, compact=True, placeholder=field.hint, select_on_focus=False)

    def on_mount(self) -> None:
        self.query(".form-row > *").filter("Input, TextArea, Select, ModelEntry").first().focus()

    def values(self) -> Values:
        """Return what stands in the entries."""
        found: Values = {}
        for field in self._fields:
            entry = self.query_one(f"#field-{field.name}")
            if isinstance(entry, Select):
                found[field.name] = str(entry.value)
            elif isinstance(entry, TextArea):
                found[field.name] = entry.text
            elif isinstance(entry, Input | ModelEntry):
                found[field.name] = entry.value
        return found

    def show_error(self, text: str) -> None:
        """Say under the entries what is wrong."""
        self.query_one("#form-error", Static).update(
            Content.styled(many_lines(text), "$error") if text else Content("")
        )

    def on_model_entry_picking(self, event: ModelEntry.Picking) -> None:
        event.stop()

        def chosen(choice: ModelChoice | None) -> None:
            if choice is not None:
                event.entry.set(choice)
                # On to the next entry, where enter hands the form in.
                self.focus_next()

        usual = ModelChoice(spec="", name="the swarm's model", source="as other new agents")
        self.app.push_screen(ModelPicker(f"{self._title}: model", self._find, (usual,)), chosen)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_submit()

    def on_text_entry_entered(self, event: TextEntry.Entered) -> None:
        event.stop()
        self.action_submit()

    def action_submit(self) -> None:
        values = self.values()
        problem = self._check(values)
        self.show_error(problem)
        if not problem:
            self.dismiss(values)

    def action_cancel(self) -> None:
        self.dismiss(None)
