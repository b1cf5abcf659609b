"""The lines above and below the panels: header, warnings, gossip, keys."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from swarmtui.plaintext import one_line
from swarmtui.plan.narrative import plural
from swarmtui.ui.actions import Keys, shown
from swarmtui.ui.states import mended
from swarmtui.ui.text import DIM, FAINT, clock, join, line, paragraph, sides, sparkline
from swarmtui.view import GossipLine, SwarmView, standing

_KINDS = {
    "done": "$success",
    "working": "$accent",
    "drafting": "$secondary",
    "voting": "$secondary",
    "failed": "$error",
}
_TONES = {"information": "$secondary", "warning": "$warning", "error": "$error"}


class Bar(Static):
    """Content of a fixed height, drawn again only when it differs."""

    _drawn: Content | None = None

    def put(self, content: Content, *, resizes: bool = False) -> None:
        """Show this; `resizes` says that its height may differ."""
        if self._drawn is None or not content.is_same(self._drawn):
            self._drawn = content
            self.update(content, layout=resizes)


class Header(Bar):
    """The plan's title and how far it is."""

    def __init__(self) -> None:
        super().__init__("", id="header", markup=False)
        self._view: SwarmView | None = None
        self._waiting = ""

    def show(self, view: SwarmView, waiting: str = "") -> None:
        """Show these figures; `waiting` says what the start is at."""
        self._view, self._waiting = view, waiting
        self._redraw()

    def on_resize(self) -> None:
        self._redraw()

    def _redraw(self) -> None:
        view = self._view
        width = self.size.width
        if view is None or not width:
            return
        badges = join(
            ("scripted", "$background on $warning") if view.scripted else "",
            ("no secret", "$warning") if not view.secured and view.machines > 1 else "",
        )
        if view.plan is None:
            told = (self._waiting, "$secondary") if self._waiting else (plural(view.peers, "peer"), DIM)
            self.put(sides(join(("swarmtui", "bold $primary"), badges), join(told), width))
            return
        plan = view.plan
        badges = join(
            ("✔ done", "bold $success") if plan.done else "",
            ("‖ paused", "bold $warning") if plan.paused else "",
            badges,
        )
        figures = [
            Content(" · ").join(
                Content.styled(words, _KINDS.get(kind, DIM)) for kind, words in standing(view) if kind != "ready"
            ),
            Content.styled(f"quorum {plan.policy.need} of {plan.policy.of}", DIM),
            Content.styled(plural(view.machines, "machine"), DIM),
        ]
        room = int(width * 0.7)
        while len(figures) > 1 and join(*figures, gap="   ").cell_length > room:
            figures.pop()
        left = join(line(plan.title, "bold"), badges)
        right = join(*figures, gap="   ")
        space = width - right.cell_length - 2
        if left.cell_length > space and badges.plain:
            left = join(
                line(plan.title, "bold").truncate(max(8, space - badges.cell_length - 2), ellipsis=True), badges
            )
        self.put(sides(left, right, width, 0.7))


class NoticeBar(Bar):
    """What a person should know now; hidden when there is nothing."""

    def __init__(self, keys: Keys) -> None:
        super().__init__("", id="notices", markup=False)
        self._keys = keys
        self._texts: list[tuple[str, str]] = []
        self._width, self._rows = 80, 3

    def fit(self, size: Size) -> None:
        """Take up to a fifth of a screen of this size."""
        self._width, self._rows = max(20, size.width - 2), max(3, size.height // 5)
        self._redraw()

    def show(self, view: SwarmView) -> None:
        """Show the gravest notices and why the plan is stalled."""
        order = {"error": 0, "warning": 1, "information": 2}
        texts = [(n.text, n.severity) for n in sorted(view.notices, key=lambda n: order.get(n.severity, 2))]
        stalls = [mended(stall, self._keys) for stall in view.plan.stalled] if view.plan else []
        known = {text for text, _ in texts}
        self._texts = [(text, "warning") for text in stalls if text not in known] + texts
        self._redraw()

    def _redraw(self) -> None:
        """Whole texts only: what to do about it stands at their ends."""
        rows: list[Content] = []
        for place, (text, tone) in enumerate(self._texts):
            lines = paragraph(one_line(text), self._width, _TONES.get(tone, DIM), 2)
            lines[0] = Content.assemble(("· " if tone == "information" else "! ", _TONES.get(tone, DIM)), lines[0][2:])
            if rows and len(rows) + len(lines) > self._rows:
                rows.append(Content.styled(f"  and {len(self._texts) - place} more", DIM))
                break
            rows += lines
        self.display = bool(rows)
        self.put(Content("\n").join(rows), resizes=True)


class Gossip(Bar, can_focus=True):
    """The newest sentences of the swarm."""

    def __init__(self) -> None:
        super().__init__("", id="gossip", classes="panel", markup=False)
        self._lines: tuple[GossipLine, ...] = ()
        self._hint = ""

    def show(self, view: SwarmView) -> None:
        """Show the newest lines, and the figures in the border."""
        self._lines = view.gossip
        self._hint = "Nothing new has been said since the start." if view.ops else "Nothing has been said yet."
        spark = sparkline(view.rates, 20 if self.size.width >= 90 else 10)
        self.border_title = Content.assemble(
            "4 Gossip ", (spark, "$secondary"), (f" {view.ops_per_second:.1f} ops/s", DIM)
        )
        same = ("✔ in step", "$success") if view.complete else ("… catching up", DIM)
        told = [(plural(view.ops, "op"), DIM), same, (view.fingerprint[:8], FAINT)] if view.ops else []
        self.border_subtitle = join(*told, gap=" · ") if told else None
        self._redraw()

    def on_resize(self) -> None:
        self._redraw()

    def _redraw(self) -> None:
        rows, width = self.size.height, self.size.width
        if not rows or not width:
            return
        if not self._lines:
            self.put(Content.styled(self._hint, DIM))
            return
        self.put(Content("\n").join([gossip_row(item, width) for item in self._lines[-rows:]]))


def gossip_row(item: GossipLine, width: int) -> Content:
    """Return one sentence with its time, cut to the width."""
    return Content.assemble((f"{clock(item.at)}  ", FAINT), line(item.text)).truncate(width, ellipsis=True)


class KeyBar(Bar):
    """The keys that matter where the person is."""

    def __init__(self, keys: Keys) -> None:
        super().__init__("", id="keys", markup=False)
        self._keys = keys
        self._where = ("plan", False)

    def show(self, panel: str, filtering: bool) -> None:
        """Show the keys of a panel."""
        self._where = (panel, filtering)
        self._redraw()

    def on_resize(self) -> None:
        self._redraw()

    def _redraw(self) -> None:
        width = self.size.width
        if not width:
            return
        fixed: list[Content] = []
        free: list[Content] = []
        for action in self._keys.footer(*self._where):
            item = Content.assemble((shown(action.keys[0]), "bold $accent"), " ", (action.short, DIM))
            (fixed if action.group == "Program" else free).append(item)
        tail = join(*fixed)
        room = width - tail.cell_length - 3
        while free and join(*free).cell_length > room:
            free.pop()
        self.put(sides(join(*free), tail, width, 0.9))
