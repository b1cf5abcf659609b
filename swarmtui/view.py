"""What the swarm hands to the screen and to headless output: immutable pictures, made in the swarm's thread.

The screen keeps the latest :class:`SwarmView` and redraws what differs. Nothing here is markup: all text is data
from people, peers and models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from swarmtui.plan.ops import OpId, PeerId, Policy, TaskId
from swarmtui.plan.state import State

Role = Literal["decomposer", "scorer", "executor", "observer", "operator"]
AgentState = Literal["starting", "running", "paused", "leaving", "silent", "gone"]


class VoteView(msgspec.Struct, frozen=True):
    scorer: str
    """Name of the scorer (its peer id's tail if its name isn't known)."""
    approve: bool
    specific: int
    distinct: int
    complete: int
    critique: str
    at: float
    """Unix seconds."""


class DraftView(msgspec.Struct, frozen=True):
    id: OpId
    author: str
    angle: str
    rationale: str
    steps: tuple[str, ...]
    refines: bool
    mark: float | None
    """Mean of the marks over its votes, 0 to 100; None without votes."""
    approvals: int
    votes: tuple[VoteView, ...]
    accepted: bool
    vetoed: bool
    at: float


class TaskView(msgspec.Struct, frozen=True):
    """One line of the tree and what the detail panel shows of it."""

    id: TaskId
    parent: TaskId | None
    depth: int
    title: str
    detail: str
    state: State
    branch: bool
    """Has, or wants, a split."""
    children: tuple[TaskId, ...]
    stalled: str
    """Why nothing moves, with the key that mends it; '' if it isn't stalled."""
    status: str
    """The words after the title: 'done 3/3', '2 drafts · 1 of 2 votes', 'ready' …"""
    holder: str
    since: float
    """Unix seconds of the claim, result or acceptance that made the state; 0 if none."""
    output: str
    result_by: str
    needs: str
    after: tuple[str, ...]
    """Titles of the tasks that it waits for or used."""
    notes: tuple[str, ...]
    drafts: tuple[DraftView, ...]
    history: tuple[tuple[float, str], ...]
    """(unix seconds, sentence), oldest first."""


class PlanView(msgspec.Struct, frozen=True):
    id: OpId
    title: str
    detail: str
    operator: str
    mine: bool
    """This program's operator gave the goal, so steering counts."""
    policy: Policy
    paused: bool
    done: bool
    stalled: tuple[str, ...]
    """Reasons why the whole plan can't go on; empty while something moves."""
    counts: Mapping[str, int]
    """Keys: leaves, done, working, voting, ready, failed, drafts, ops."""
    root: TaskId
    tasks: Mapping[TaskId, TaskView]
    """Live tasks only (a view of an unchanged task is the same object as before)."""
    started: float


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


class GossipLine(msgspec.Struct, frozen=True):
    at: float
    text: str
    """One sentence, e.g. 'bob approved "by place" for Food (specific 71, distinct 80, complete 64)'."""
    task: TaskId | None


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
