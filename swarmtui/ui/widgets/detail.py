"""The detail panel: all that is known of one task or one agent, on tabs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from swarmtui.plan.ops import OpId
from swarmtui.ui.actions import Keys
from swarmtui.ui.text import DIM
from swarmtui.ui.widgets import pages
from swarmtui.ui.widgets.bars import Bar
from swarmtui.ui.widgets.lines import Lines
from swarmtui.view import AgentView, DraftView, PlanView, TaskView

TABS = ("Task", "Drafts", "Votes", "Result", "History")


class DetailPage(Lines):
    """The text of one tab. On pages of drafts the cursor goes from draft to draft, elsewhere the text scrolls."""

    HINT: ClassVar[str] = "Nothing is chosen: move the cursor in the plan."

    class TabAsked(Message):
        """Left or right was pressed."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def __init__(self, keys: Keys, resized: Callable[[], None]) -> None:
        super().__init__(keys, id="detail-page")
        self._text: list[Content] = []
        self._groups: list[OpId | None] = []
        self._resized = resized

    def show_page(self, rows: list[pages.Row]) -> None:
        """Show these lines; a row's group is the draft that it belongs to."""
        self._text = [row.text for row in rows]
        counts: dict[OpId | None, int] = {}
        keys: list[Hashable] = []
        for row in rows:
            counts[row.group] = counts.get(row.group, -1) + 1
            keys.append((row.group, counts[row.group]))
        self._groups = [row.group for row in rows]
        self.show(keys)

    @property
    def grouped(self) -> bool:
        """True on pages where a draft can be chosen."""
        return any(group is not None for group in self._groups)

    @property
    def group(self) -> OpId | None:
        """The draft under the cursor."""
        return self._groups[self.cursor] if self.cursor < len(self._groups) else None

    def selected(self, index: int) -> bool:
        return self.group is not None and index == self._groups.index(self.group)

    def draw(self, index: int, width: int) -> Content:
        mark = self.group is not None and self._groups[index] == self.group
        return Content.assemble(("▎" if mark else " ", "$accent"), self._text[index])

    def _step(self, step: int) -> None:
        if not self.grouped:
            self.scroll_to(y=self.scroll_offset.y + step, animate=False, force=True)
            return
        heads = [i for i, g in enumerate(self._groups) if g is not None and (i == 0 or self._groups[i - 1] != g)]
        here = heads.index(self._groups.index(self.group)) if self.group in self._groups and self.group else 0
        here = max(0, min(len(heads) - 1, here + step))
        self._go(heads[here])
        end = heads[here + 1] if here + 1 < len(heads) else len(self._groups)
        self.reveal(heads[here], end - 1)

    def action_down(self) -> None:
        self._step(1)

    def action_up(self) -> None:
        self._step(-1)

    def action_first(self) -> None:
        self._step(-len(self._groups))

    def action_last(self) -> None:
        self._step(len(self._groups))

    def action_page_down(self) -> None:
        self.scroll_to(y=self.scroll_offset.y + max(1, self.size.height // 2), animate=False, force=True)

    def action_page_up(self) -> None:
        self.scroll_to(y=self.scroll_offset.y - max(1, self.size.height // 2), animate=False, force=True)

    def action_left(self) -> None:
        self.post_message(self.TabAsked(-1))

    def action_right(self) -> None:
        self.post_message(self.TabAsked(1))

    def on_resize(self) -> None:
        self._resized()
        super().on_resize()


class TabBar(Bar):
    """The names of the tabs, the shown one marked; a click shows another."""

    class Asked(Message):
        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self) -> None:
        super().__init__("", id="detail-tabs", markup=False)
        self._spans: list[tuple[int, int]] = []

    def show_tabs(self, labels: list[str], active: int) -> None:
        """Draw the labels, closer to each other where there is little room."""
        for pad, gap in ((" ", " "), (" ", ""), ("", " ")):
            content = Content(gap)
            self._spans = []
            for i, label in enumerate(labels):
                start = content.cell_length
                style = "bold $background on $accent" if i == active else DIM
                content = Content.assemble(content, (f"{pad}{label}{pad}", style), gap)
                self._spans.append((start, content.cell_length - len(gap)))
            if content.cell_length <= self.size.width + len(gap):
                break
        self.put(content)

    def on_click(self, event: events.Click) -> None:
        for i, (start, end) in enumerate(self._spans):
            if start <= event.x < end:
                self.post_message(self.Asked(i))


class Detail(Vertical):
    """Shows what the focused list's cursor is on."""

    def __init__(self, keys: Keys, now: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(id=id, classes="panel")
        self.now = now
        self._keys = keys
        self.page = DetailPage(keys, self.redraw)
        self.tabs = TabBar()
        self.tab = 0
        self.plan: PlanView | None = None
        self.subject: TaskView | None = None
        self.agent: AgentView | None = None
        self._drawn: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        yield self.tabs
        yield self.page

    def on_mount(self) -> None:
        self.redraw()

    def show_task(self, plan: PlanView | None, task: TaskView | None) -> None:
        """Show a task, or its newer picture."""
        new = self.agent is not None or (task and task.id) != (self.subject and self.subject.id)
        self.plan, self.subject, self.agent = plan, task, None
        self._fresh(new)

    def show_agent(self, agent: AgentView | None) -> None:
        """Show an agent, or its newer picture."""
        new = (agent and agent.peer) != (self.agent and self.agent.peer)
        self.agent = agent
        self._fresh(new)

    def _fresh(self, new: bool) -> None:
        self.redraw()
        if new:
            self.page.cursor = 0
            self.page.scroll_to(y=0, animate=False, force=True)

    def show_tab(self, index: int) -> None:
        """Show a tab by its place."""
        if self.agent is None and 0 <= index < len(TABS) and index != self.tab:
            self.tab = index
            self._fresh(True)

    def redraw(self) -> None:
        """Draw again from what is held, at the present width."""
        width = max(20, self.page.size.width - 3)
        ages = int(self.now()) if self.agent is not None or self.tab == 0 else 0
        drawing = (self.agent, self.subject, self.tab, width, ages, self.plan and self.plan.policy)
        if len(drawing) == len(self._drawn) and all(
            a is b or a == b for a, b in zip(drawing, self._drawn, strict=True)
        ):
            return
        self._drawn = drawing
        if self.agent is not None:
            self.tabs.show_tabs(["Agent"], 0)
            self.page.show_page(pages.agent_page(self.agent, width, self.now()))
            return
        labels = list(TABS)
        if self.subject is None:
            self.tabs.show_tabs(labels, self.tab)
            self.page.show_page([])
            return
        if self.subject.drafts:
            labels[1] = f"Drafts {len(self.subject.drafts)}"
        if votes := sum(len(d.votes) for d in self.subject.drafts):
            labels[2] = f"Votes {votes}"
        if self.subject.output:
            labels[3] = "Result ✔"
        self.tabs.show_tabs(labels, self.tab)
        self.page.show_page(pages.PAGES[self.tab](self.subject, self.plan, width, self.now(), self._keys))

    def draft(self) -> DraftView | None:
        """Return the draft under the cursor (on the pages Drafts and Votes)."""
        if self.subject is None or self.agent is not None:
            return None
        return next((d for d in self.subject.drafts if d.id == self.page.group), None)

    def on_detail_page_tab_asked(self, event: DetailPage.TabAsked) -> None:
        event.stop()
        self.show_tab((self.tab + event.step) % len(TABS))

    def on_tab_bar_asked(self, event: TabBar.Asked) -> None:
        event.stop()
        self.show_tab(event.index)
