"""What the swarm hands to the screen and to headless output: immutable pictures, made in the swarm's thread.

The screen keeps the latest :class:`SwarmView` and redraws what differs. Nothing here is markup: all text is data
from people, peers and models.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from swarmtui.plan.ops import OpId, PeerId, TaskId
from swarmtui.plan.state import State
from swarmtui.plan.views import DraftView, PlanView, Stall, TaskView, VoteView

__all__ = [
    "AgentState",
    "AgentView",
    "DraftView",
    "GossipLine",
    "KeptPlan",
    "ModelChoice",
    "Notice",
    "PlanView",
    "Role",
    "Stall",
    "SwarmView",
    "TaskView",
    "VoteView",
    "standing",
]

Role = Literal["decomposer", "scorer", "executor", "observer", "operator"]
AgentState = Literal["starting", "running", "paused", "leaving", "silent", "gone"]


class AgentView(msgspec.Struct, frozen=True):
    peer: PeerId
    name: str
    role: Role
    local: bool
    """Lives in this process, so it can be killed, crashed and paused here."""
    state: AgentState
    doing: str
    """drafting, judging, working, merging, idle, waiting …"""
    subject: str
    """The task's title, or why it's idle."""
    since: float
    """Unix seconds since when."""
    tokens_per_second: float
    ops: int
    """Ops that it has published."""
    model: str
    skills: tuple[str, ...]
    tail: str
    """The last characters that its model wrote, while it writes."""
    fault: str
    """Why it isn't to be trusted or has ended; '' if all is well."""
    trouble: str = ""
    """What went wrong last at its work, and what can be done about it; '' after a success."""
    addresses: tuple[str, ...] = ()
    """Multiaddrs at which others can join this program, at its operator."""


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A model that an agent may use."""

    spec: str
    """What is handed to the swarm."""
    name: str
    source: str
    """Where it was found."""
    size: str = ""
    """For people, like the next two: '0.1 GB'."""
    quantisation: str = ""
    needs: str = ""
    """Memory that it takes."""
    context: int = 0
    """Tokens; 0 if unknown."""
    problem: str = ""
    """Why it can't be used; '' if it can."""
    note: str = ""
    """What to know before using it."""


class GossipLine(msgspec.Struct, frozen=True):
    at: float
    text: str
    """One sentence, e.g. 'bob approved "by place" for Food (specific 71, distinct 80, complete 64)'."""
    task: TaskId | None


class KeptPlan(msgspec.Struct, frozen=True):
    """A plan of an earlier run that lies in the journal and isn't taken up."""

    id: OpId
    title: str
    started: float
    """Unix seconds."""


class Notice(msgspec.Struct, frozen=True):
    """Something that a person should know, with the remedy in the text."""

    text: str
    severity: Literal["information", "warning", "error"]


class SwarmView(msgspec.Struct, frozen=True):
    """Everything on the main screen at one moment."""

    version: int
    """Grows with every change."""
    plan: PlanView | None
    plans: tuple[tuple[OpId, str], ...]
    """Every plan held: (id, title), newest last."""
    agents: tuple[AgentView, ...]
    gossip: tuple[GossipLine, ...]
    """The newest 200, oldest first."""
    ops_per_second: float
    rates: tuple[float, ...]
    """Ops per second in each of the last 30 seconds, oldest first (the sparkline)."""
    ops: int
    fingerprint: str
    """Hex, of the embedded observer's replica."""
    complete: bool
    """Equals the fingerprint in at least two other peers' presence (or all, if fewer)."""
    peers: int
    machines: int
    model: str
    scripted: bool
    secured: bool
    """The swarm has a secret."""
    notices: tuple[Notice, ...]
    """In force now."""
    addresses: tuple[str, ...] = ()
    """Multiaddrs at which others can join."""
    kept: tuple[KeptPlan, ...] = ()
    """Newest last."""


def standing(view: SwarmView) -> list[tuple[str, str]]:
    """Say how far the shown plan is.

    Returns:
        (kind, words), e.g. ("done", "3/8 done"), ("working", "2 working"); what there is none of is left out.
    """
    if view.plan is None:
        return [("none", "no plan yet")]
    counts = dict(view.plan.counts)
    drafted = {agent.subject for agent in view.agents if agent.state == "running" and agent.doing == "drafting"}
    open_ = [task for task in view.plan.tasks.values() if task.state is State.OPEN] if drafted else []
    counts["drafting"] = sum(task.title in drafted for task in open_)
    found = [("done", f"{counts['done']}/{counts['leaves']} done")] if counts["leaves"] else []
    kinds = ("working", "drafting", "voting", "ready", "failed")
    found += [(kind, f"{counts[kind]} {kind}") for kind in kinds if counts.get(kind)]
    return found or [("none", "no draft yet")]
