"""How states look: a glyph, a word and a colour each, so that nothing is said by colour alone."""

from __future__ import annotations

import re
from typing import NamedTuple

from textual.content import Content

from swarmtui.plaintext import one_line
from swarmtui.plan.state import State
from swarmtui.ui.actions import Keys
from swarmtui.ui.text import DIM, FAINT, age, line
from swarmtui.view import AgentView, DraftView, Stall, TaskView


class Look(NamedTuple):
    """The face of a state."""

    glyph: str
    word: str
    colour: str


LOOKS: dict[State, Look] = {
    State.OPEN: Look("◦", "open", DIM),
    State.DRAFT: Look("◇", "draft", "$secondary"),
    State.ACCEPTED: Look("●", "branch", "$primary"),
    State.WAITING: Look("◌", "waiting", DIM),
    State.READY: Look("○", "ready", "$foreground"),
    State.CLAIMED: Look("◐", "claimed", "$accent"),
    State.DONE: Look("✔", "done", "$success"),
    State.FAILED: Look("✗", "failed", "$error"),
    State.SUPERSEDED: Look("⊘", "vetoed", FAINT),
}
STALLED = Look("!", "stalled", "$warning")
VETOED = Look("⊘", "vetoed", "$error")
APPROVED = Look("✔", "approved", "$success")
REFUSED = Look("✗", "refused", "$error")

LEGEND: tuple[tuple[Look, str], ...] = (
    (LOOKS[State.OPEN], "a task that nobody has drafted a split for yet"),
    (LOOKS[State.DRAFT], "drafts compete, none has its quorum yet"),
    (LOOKS[State.ACCEPTED], "split: its quorum chose a draft"),
    (LOOKS[State.WAITING], "waits for the results of other tasks"),
    (LOOKS[State.READY], "can be claimed by an executor"),
    (LOOKS[State.CLAIMED], "an executor works on it"),
    (LOOKS[State.DONE], "has its result"),
    (LOOKS[State.FAILED], "given back too often; {retry_task} tries again"),
    (VETOED, "ruled out by the operator"),
    (STALLED, "nothing moves; the reason stands beside it"),
)
"""For the help, with the names of actions in the places of their keys."""

ROLES: dict[str, tuple[str, str]] = {
    "decomposer": ("D", "$secondary"),
    "scorer": ("S", "$primary"),
    "executor": ("E", "$accent"),
    "observer": ("O", DIM),
    "operator": ("P", "$success"),
}


def look(task: TaskView) -> Look:
    """Return the face of a task: a stall covers what lies under it."""
    return STALLED if task.stalled else LOOKS[task.state]


def draft_look(draft: DraftView) -> Look:
    """Return the face of a draft."""
    if draft.vetoed:
        return VETOED
    return Look("✔", "accepted", "$success") if draft.accepted else LOOKS[State.DRAFT]


def mended(stall: Stall, keys: Keys) -> str:
    """Return why nothing moves, and which of the person's keys mends it."""
    return f"{stall.reason}: {keys.fill(stall.remedy)}"


def status(task: TaskView, now: float, keys: Keys) -> Content:
    """Return the words that stand after a task's title."""
    face = look(task)
    if task.stalled:
        return line(f"stalled: {mended(task.stalled, keys)}", face.colour)
    text = task.status or face.word
    if _COUNT.fullmatch(text):
        text = f"done {text}"
    if task.state is State.CLAIMED:
        text = " · ".join(part for part in (text, age(now - task.since) if task.since else "") if part)
    return line(text, face.colour if task.state in _LOUD else DIM)


_COUNT = re.compile(r"\d+/\d+")
_LOUD = {State.CLAIMED, State.FAILED}


def agent_state(agent: AgentView) -> tuple[str, str]:
    """Return the word for what an agent does, and its colour."""
    if agent.state != "running":
        return agent.state, {"paused": "$warning", "gone": FAINT, "silent": "$error"}.get(agent.state, DIM)
    if agent.fault:
        return "faulty", "$error"
    return agent.doing or "idle", DIM if agent.doing in _AT_REST else "$foreground"


def busy(agent: AgentView) -> bool:
    """Say whether an agent would lose work if it ended now."""
    return agent.state == "running" and agent.doing not in _AT_REST


def at_work(agent: AgentView) -> str:
    """Say in a sentence what a busy agent does."""
    return f"It {_DOES.get(agent.doing, f'is {agent.doing}')} “{one_line(agent.subject)}”."


_DOES = {
    "drafting": "drafts a split of",
    "judging": "judges a draft of",
    "claiming": "claims",
    "working": "works on",
    "merging": "merges the results of",
}
_AT_REST = {"", "idle", "waiting", "watching", "listening", "starting"}
