"""The main screen: plan, agents, detail, gossip, and the keys."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Input, Static

from swarmtui.plan.narrative import plural
from swarmtui.ui.actions import PANELS, Keys, Panel
from swarmtui.ui.screens.commands import Commands
from swarmtui.ui.text import DIM
from swarmtui.ui.widgets.agents import AgentList
from swarmtui.ui.widgets.bars import Bar, Gossip, Header, KeyBar, NoticeBar
from swarmtui.ui.widgets.detail import Detail
from swarmtui.ui.widgets.entries import LineEntry
from swarmtui.ui.widgets.lines import Lines
from swarmtui.ui.widgets.plan_tree import PlanTree
from swarmtui.view import SwarmView

WIDE = 100
SMALLEST = (60, 16)


class PanelTabs(Bar):
    """Names the panels when only one of them fits."""

    def __init__(self) -> None:
        super().__init__("", id="panel-tabs", markup=False)
        self._ends: list[int] = []

    def show(self, active: str) -> None:
        """Mark the shown panel."""
        content = Content("")
        self._ends = []
        for number, name in enumerate(PANELS[:3], 1):
            style = "bold $background on $accent" if name == active else DIM
            content = Content.assemble(content, (f" {number} {name.capitalize()} ", style), " ")
            self._ends.append(content.cell_length)
        self.put(content)

    def on_click(self, event: Click) -> None:
        for number, end in enumerate(self._ends, 1):
            if event.x < end:
                self.screen.call_later(self.screen.run_action, f"panel_{number}")
                return


class MainScreen(Commands, Screen[None]):
    """Everything at one glance. What it shows comes from one SwarmView; what it does goes through the swarm's door."""

    AUTO_FOCUS = "#plan"

    def __init__(self, keys: Keys, now: Callable[[], float]) -> None:
        super().__init__()
        self.keys = keys
        self.now = now
        self.view: SwarmView | None = None
        self.panel: Panel = "plan"
        self.following = False
        self._done_said: bytes | None = None
        self.plan_tree = PlanTree(keys, now, id="plan")
        self.agents = AgentList(keys, now, id="agents")
        self.detail = Detail(keys, now, id="detail")
        self.header = Header()
        self.notices = NoticeBar(keys)
        self.gossip = Gossip()
        self.key_bar = KeyBar(keys)
        self.panel_tabs = PanelTabs()
        self.filter_input = LineEntry(
            id="filter", compact=True, placeholder="text or state; enter keeps the filter, esc ends it"
        )

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.notices
        yield self.panel_tabs
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self.plan_tree
                yield self.filter_input
            with Vertical(id="right"):
                yield self.agents
                yield self.detail
        yield self.gossip
        yield self.key_bar
        yield Container(Static("", id="too-small-text", markup=False), id="too-small")

    def on_mount(self) -> None:
        self.filter_input.display = False
        self.plan_tree.border_title = Content("1 Plan")
        self.agents.border_title = Content("2 Agents")
        self.detail.border_title = Content("3 Detail")
        self._show_panels()

    # The picture

    def show_view(self, view: SwarmView, waiting: str = "") -> None:
        """Show a newer picture in place."""
        old, self.view = self.view, view
        self.header.show(view, waiting)
        self.notices.show(view)
        self.gossip.show(view)
        self.agents.update_agents(view.agents)
        self.plan_tree.update_plan(view.plan)
        if self.following and view.gossip and (old is None or old.gossip is not view.gossip):
            newest = next((item.task for item in reversed(view.gossip) if item.task is not None), None)
            if newest is not None:
                self.plan_tree.select(newest)
        self._show_titles()
        self._show_detail()
        self._say_done(view)

    def tick(self) -> None:
        """Let what shows an age grow older."""
        self.agents.refresh()
        self.plan_tree.refresh()
        if self.view is not None:
            self._show_detail()

    def _show_titles(self) -> None:
        view = self.view
        if view is None:
            return
        gone = sum(agent.state == "gone" for agent in view.agents)
        count = f"{len(view.agents) - gone}" + (f" · {gone} gone" if gone else "")
        self.agents.border_subtitle = Content.styled(count, DIM)
        notes = []
        if self.plan_tree.filter:
            notes.append(f"/{self.plan_tree.filter}  {plural(len(self.plan_tree.matches), 'match', 'matches')}")
        if self.following:
            notes.append("following")
        plans = len(view.plans) + len(view.kept)
        if plans > (view.plan is not None):
            notes.append(f"{plural(plans, 'plan')}, press {self.keys.key('palette')} to choose")
        self.plan_tree.border_subtitle = Content.styled(" · ".join(notes), "$accent") if notes else None

    def _show_detail(self) -> None:
        agent = self.agents.agent()
        if self.detail.agent is not None and agent is not None and self.panel in ("agents", "detail"):
            self.detail.show_agent(agent)
        else:
            self.detail.show_task(self.plan_tree.plan, self.plan_tree.chosen())

    def _say_done(self, view: SwarmView) -> None:
        plan = view.plan
        if plan is not None and plan.done and plan.id != self._done_said:
            self._done_said = plan.id
            self.say(f"The plan is done. Press {self.keys.key('export')} to export it.")

    def on_lines_moved(self, event: Lines.Moved) -> None:
        event.stop()
        if event.lines is self.agents and self.panel == "agents":
            self.detail.show_agent(self.agents.agent())
        elif event.lines is self.plan_tree and not (self.panel == "agents" or self.detail.agent):
            self.detail.show_task(self.plan_tree.plan, self.plan_tree.chosen())

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        event.stop()
        if event.lines in (self.plan_tree, self.agents):
            self.go_to("detail")

    # Panels

    def on_descendant_focus(self) -> None:
        """Keep the panel's name beside the focus, whichever way the focus came."""
        focused = self.focused
        for name in PANELS:
            panel = self.query_one(f"#{name}")
            if focused is not None and panel in focused.ancestors_with_self:
                self._entered(name)
        self._show_panels()

    def _entered(self, name: Panel) -> None:
        self.panel = name
        if name == "plan":
            self.detail.show_task(self.plan_tree.plan, self.plan_tree.chosen())
        elif name == "agents" and self.agents.agent() is not None:
            self.detail.show_agent(self.agents.agent())

    def go_to(self, name: Panel) -> None:
        """Move the focus to a panel. What follows of it is done at once: the next key may come before the focus."""
        self._entered(name)
        self._show_panels()
        target = self.detail.page if name == "detail" else self.query_one(f"#{name}")
        self.set_focus(target)

    def on_resize(self, event: Resize) -> None:
        self.fit(event.size)

    def fit(self, size: Size) -> None:
        """Show as much as this size allows; also while a window stands over the screen."""
        width, height = size
        small = width < SMALLEST[0] or height < SMALLEST[1]
        self.set_class(small, "-small")
        self.set_class(not small and width < WIDE, "-narrow")
        self.set_class(height < 30, "-low")
        self.notices.fit(size)
        needed = f"{SMALLEST[0]}×{SMALLEST[1]}"
        text = f"swarmtui needs {needed} cells; this window has {width}×{height}.\nMake it larger. q quits."
        self.query_one("#too-small-text", Static).update(Content(text))
        self._show_panels()

    def _show_panels(self) -> None:
        shown = self.panel if self.panel in PANELS[:3] else self._last_panel
        self._last_panel = shown
        for name in PANELS[:3]:
            self.set_class(name == shown, f"-show-{name}")
        self.panel_tabs.show(shown)
        self.key_bar.show("agents" if self.on_agents else self.panel, bool(self.plan_tree.filter))

    _last_panel: Panel = "plan"

    @property
    def detail_in_sight(self) -> bool:
        """Whether the detail is shown: by what was chosen, since the next key may come before it's laid out."""
        return not self.has_class("-narrow") or self._last_panel == "detail"

    def action_panel_1(self) -> None:
        self.go_to("plan")

    def action_panel_2(self) -> None:
        self.go_to("agents")

    def action_panel_3(self) -> None:
        self.go_to("detail")

    def action_panel_4(self) -> None:
        self.go_to("gossip")

    def action_next_panel(self) -> None:
        self.go_to(PANELS[(PANELS.index(self.panel) + 1) % 4])

    def action_previous_panel(self) -> None:
        self.go_to(PANELS[(PANELS.index(self.panel) - 1) % 4])

    # Finding

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("next_match", "previous_match", "end_filter"):
            return bool(self.plan_tree.filter) or self.filter_input.display
        return True

    def action_filter(self) -> None:
        self.go_to("plan")
        self.filter_input.display = True
        self.filter_input.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.plan_tree.set_filter(event.value)
        self._show_titles()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.filter_input.display = False
        self.go_to("plan")

    def action_next_match(self) -> None:
        self.plan_tree.next_match(1)

    def action_previous_match(self) -> None:
        self.plan_tree.next_match(-1)

    def action_end_filter(self) -> None:
        self.filter_input.value = ""
        self.plan_tree.set_filter("")
        self.filter_input.display = False
        self._show_titles()
        self.go_to("plan")

    def action_follow(self) -> None:
        self.following = not self.following
        self._show_titles()
        self.say("The cursor follows the newest change." if self.following else "The cursor stays where you put it.")
