"""The one table of keys. Bindings, footer, help and palette are all made from it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from textual.binding import Binding
from textual.keys import _character_to_key

Panel = Literal["plan", "agents", "detail", "gossip"]
Scope = Literal["main", "list", "filter"]
PANELS: tuple[Panel, ...] = ("plan", "agents", "detail", "gossip")
_ALL = frozenset(PANELS)


@dataclass(frozen=True)
class Action:
    """One thing that a key does."""

    name: str
    """Name in the config's [keys], and of the method `action_<name>` of the main screen or of a list."""
    keys: tuple[str, ...]
    short: str
    """For the footer; '' keeps it out."""
    help: str
    group: str
    scope: Scope = "main"
    """main: everywhere on the main screen; list: where lines are; filter: only while a filter is on, before main."""
    panels: frozenset[str] = _ALL
    """Where the footer shows it."""
    palette: bool = True


def _main(name: str, keys: str, short: str, text: str, group: str, panels: str = "plan agents detail gossip") -> Action:
    return Action(name, tuple(keys.split()), short, text, group, panels=frozenset(panels.split()))


def _list(name: str, keys: str, text: str) -> Action:
    return Action(name, tuple(keys.split()), "", text, "Move", "list", palette=False)


def _filter(name: str, keys: str, short: str, text: str) -> Action:
    return Action(name, tuple(keys.split()), short, text, "Find", "filter", frozenset({"plan"}), palette=False)


ACTIONS: tuple[Action, ...] = (
    _main("new_goal", "n", "goal", "Give the swarm a new goal", "Plan", "plan agents gossip"),
    _main("add_decomposer", "d", "decomposer", "Add a decomposer: it drafts splits", "Agents", "plan agents"),
    _main("add_scorer", "s", "scorer", "Add a scorer: it votes on drafts", "Agents", "plan agents"),
    _main("add_executor", "e", "executor", "Add an executor: it works on ready tasks", "Agents", "plan agents"),
    _main("form_decomposer", "D", "", "Add a decomposer with a form: name, angle, model", "Agents"),
    _main("form_scorer", "S", "", "Add a scorer with a form", "Agents"),
    _main("form_executor", "E", "", "Add an executor with a form", "Agents"),
    _main(
        "choose_model",
        "m",
        "model",
        "Choose the agent's model, or that of new agents",
        "Agents",
        "agents",
    ),
    _main("kill", "x", "kill", "Ask the agent under the cursor to leave, politely", "Agents", "agents"),
    _main(
        "crash",
        "X",
        "crash",
        "Crash the agent under the cursor, without a goodbye",
        "Agents",
        "agents",
    ),
    _main("join_peer", "J", "", "Join a swarm elsewhere by the address of a peer", "Agents"),
    _main("pick_draft", "a", "pick", "Pick this draft: accept it, whatever the votes say", "Plan", "detail"),
    _main("veto_draft", "v", "veto", "Veto this draft: rule it out", "Plan", "detail"),
    _main("retry_task", "r", "retry", "Try this task again: its result counts no more", "Plan", "detail"),
    _main("note_task", "i", "note", "Write a note to the agents about this task", "Plan", "plan detail"),
    _main("policy", "Q", "quorum", "Change the quorum and the policy of this plan", "Plan", ""),
    _main("pause", "p", "pause", "Pause or resume the agent, elsewhere the whole plan", "Plan", "plan agents"),
    _main("export", "w", "export", "Export the plan to a file", "Plan", "plan detail gossip"),
    _main("copy", "y", "copy", "Copy the task's result, or the task", "Plan", "detail"),
    _main("filter", "slash", "filter", "Filter the plan by text or state", "Find", "plan gossip"),
    _filter("next_match", "n", "next", "Next match, while a filter is on"),
    _filter("previous_match", "N", "previous", "Previous match, while a filter is on"),
    _filter("end_filter", "escape", "end filter", "Leave the filter"),
    _main("follow", "f", "follow", "Follow the newest change", "Find", "plan gossip"),
    _main("gossip_log", "l", "log", "Open the gossip log", "Find", "gossip"),
    _main("panel_1", "1", "", "Go to Plan", "Move"),
    _main("panel_2", "2", "", "Go to Agents", "Move"),
    _main("panel_3", "3", "", "Go to Detail", "Move"),
    _main("panel_4", "4", "", "Go to Gossip", "Move"),
    _main("next_panel", "tab", "", "Next panel", "Move"),
    _main("previous_panel", "shift+tab", "", "Previous panel", "Move"),
    _list("down", "down j", "Down"),
    _list("up", "up k", "Up"),
    _list("first", "g home", "To the top"),
    _list("last", "G end", "To the bottom"),
    _list("page_down", "ctrl+d pagedown", "Half a page down"),
    _list("page_up", "ctrl+u pageup", "Half a page up"),
    _list("left", "left h", "Fold, or the tab to the left"),
    _list("right", "right", "Unfold, or the tab to the right"),
    _list("choose", "enter", "Open the detail of what is under the cursor"),
    _list("fold", "space", "Fold or unfold a branch"),
    _main("palette", "colon ctrl+p", "", "Open the palette: every command by name", "Program"),
    _main("help", "question_mark", "help", "Show this help", "Program"),
    _main("suspend", "ctrl+z", "", "Go to the shell for a while; its `fg` comes back", "Program"),
    _main("quit", "q", "quit", "Quit (asks while agents work; the plan is kept)", "Program"),
)

NAMES: dict[str, Action] = {action.name: action for action in ACTIONS}


class KeyConfigError(ValueError):
    """The config's [keys] can't be used; the text says which entry and why."""


class Keys:
    """The table with a person's own keys in it."""

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        """Put a person's keys in the place of the defaults.

        Args:
            own: Action name to key, or to several keys with commas between them.

        Raises:
            KeyConfigError: if an action isn't known, a key is empty, or one key would do two things.
        """
        own = own or {}
        for name in own:
            if name not in NAMES:
                near = difflib.get_close_matches(name, NAMES, 1)
                hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(NAMES)}"
                raise KeyConfigError(f"keys.{name}: no such action{hint}")
        self.actions = tuple(
            replace(a, keys=_own_keys(a.name, own[a.name]) if a.name in own else a.keys) for a in ACTIONS
        )
        self.actions = tuple(replace(a, keys=tuple(_long(key) for key in a.keys)) for a in self.actions)
        self._refuse_doubles()
        self._shown = {action.name: shown(action.keys[0]) for action in self.actions}

    def _refuse_doubles(self) -> None:
        taken: dict[tuple[bool, str], str] = {}
        for action in self.actions:
            for key in action.keys:
                for layer in (True, False) if action.scope == "list" else (action.scope == "filter",):
                    other = taken.setdefault((layer, key), action.name)
                    if other != action.name:
                        raise KeyConfigError(
                            f"keys.{action.name}: {shown(key)} is already the key of {other}; give one of them another"
                        )

    def list_bindings(self) -> list[Binding]:
        """Return the bindings of a list of lines."""
        return [Binding(",".join(a.keys), a.name, a.help, show=False) for a in self.actions if a.scope == "list"]

    def bindings(self) -> list[Binding]:
        """Return the bindings of the main screen."""
        first = [a for a in self.actions if a.scope == "filter"]
        rest = [a for a in self.actions if a.scope == "main"]
        return [Binding(",".join(a.keys), a.name, a.help, show=False, id=a.name) for a in (*first, *rest)]

    def key(self, name: str) -> str:
        """Return the first key of an action, as people read it."""
        return self._shown[name]

    def fill(self, text: str) -> str:
        """Put the keys in the places of the actions in a text of ours: "press {quit} to end" → "press q to end".

        Never for words of others: braces in them would be taken for places.
        """
        return text.format_map(self._shown)

    def footer(self, panel: str, filtering: bool) -> Iterator[Action]:
        """Yield the actions that the footer shows for a panel: what only it has, then the rest in the table's order."""
        candidates = [a for a in self.actions if a.short and panel in a.panels and (a.scope != "filter" or filtering)]
        shadowed = {key for a in candidates if a.scope == "filter" for key in a.keys}
        live = [a for a in candidates if a.scope == "filter" or not shadowed.intersection(a.keys)]
        return iter(sorted(live, key=lambda a: (a.group == "Program", a.scope != "filter", len(a.panels) > 1)))


def shown(key: str) -> str:
    """Return a key as people read it."""
    names = {
        "question_mark": "?",
        "slash": "/",
        "colon": ":",
        "escape": "esc",
        "up": "↑",
        "down": "↓",
        "left": "←",
        "right": "→",
    }
    if key in names:
        return names[key]
    head, plus, last = key.rpartition("+")
    return f"{head}{plus}{names.get(last, last)}" if head else key


def _own_keys(name: str, text: str) -> tuple[str, ...]:
    keys = (text,) if text == "," else tuple(part.strip() for part in text.split(",") if part.strip())
    if not keys:
        raise KeyConfigError(f"keys.{name}: empty; name a key, e.g. {NAMES[name].keys[0]!r}")
    return keys


def _long(key: str) -> str:
    """Return Textual's name of a key: '?' is 'question_mark'."""
    return _character_to_key(key) if len(key) == 1 else key
