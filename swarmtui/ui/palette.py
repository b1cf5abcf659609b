"""The commands of the palette: the table of keys, the plans held, and the colours. Plan titles are never markup."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from swarmtui.plaintext import one_line
from swarmtui.ui.text import day

if TYPE_CHECKING:
    from swarmtui.ui.app import SwarmApp


class _Entry(NamedTuple):
    title: str
    key: str
    run: Callable[[], object]


class SwarmCommands(Provider):
    """Offers everything that can be done, by name."""

    def _entries(self) -> Iterator[_Entry]:
        app = cast("SwarmApp", self.app)
        main = app.main
        for action in app.keys.actions:
            if action.palette and action.name != "palette" and hasattr(main, f"action_{action.name}"):
                yield _Entry(action.help, app.keys.key(action.name), getattr(main, f"action_{action.name}"))
        view = app.swarm.latest
        shown = view.plan.id if view.plan else b""
        for plan_id, title in reversed(view.plans):
            if plan_id != shown:
                yield _Entry(f"Show the plan: {one_line(title)}", "", self._show(app, plan_id))
        for plan in reversed(view.kept):
            named = f"Take up the plan of {day(plan.started)}: {one_line(plan.title)}"
            yield _Entry(named, "", self._show(app, plan.id))
        yield _Entry("Change between dark and light colours", "", app.change_colours)

    @staticmethod
    def _show(app: SwarmApp, plan_id: bytes) -> Callable[[], object]:
        return lambda: app.ask(lambda swarm: swarm.show_plan(plan_id))

    _done = False

    def _run(self, entry: _Entry) -> None:
        """Do it, once: enter may have been pressed again while the palette closed."""
        if not self._done:
            self._done = True
            entry.run()

    async def discover(self) -> Hits:
        for entry in self._entries():
            yield DiscoveryHit(_shown(Content(entry.title), entry.key), partial(self._run, entry), text=entry.title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry in self._entries():
            if (score := matcher.match(entry.title)) > 0:
                found = _marked(entry.title, query)
                yield Hit(score, _shown(found, entry.key), partial(self._run, entry), text=entry.title)


def _shown(title: Content, key: str) -> Content:
    return Content.assemble((f"{key:>5}  ", "$accent"), title)


def _marked(title: str, query: str) -> Content:
    """Underline the query where it stands in the title (Textual's own highlighting reads the title as markup)."""
    start = title.casefold().find(query.casefold())
    return Content(title).stylize("underline", start, start + len(query)) if start >= 0 else Content(title)
