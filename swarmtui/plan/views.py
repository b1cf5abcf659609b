"""What a person asks of a plan: pictures of its drafts, tasks and tree, immutable and pure.

Made by :mod:`swarmtui.plan.picture`. All text in them is data from people, peers and models, never markup.
Times are Unix seconds as the ops' authors stated them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .ops import OpId, Policy, TaskId
from .state import State


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


class Stall(msgspec.Struct, frozen=True):
    """Why nothing moves, and what mends it."""

    reason: str
    """Says it all by itself; titles and skills in it are other people's words."""
    remedy: str
    """Words of ours alone, with the terminal's actions in the places of their keys: 'press {add_scorer} to add one'."""


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
    stalled: Stall | None
    """Why it doesn't move; None if somebody can move it."""
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
    stalled: tuple[Stall, ...]
    """Why the whole plan can't go on; empty while something moves."""
    counts: Mapping[str, int]
    """Keys: leaves, done, working, voting, ready, failed, drafts, ops."""
    root: TaskId
    tasks: Mapping[TaskId, TaskView]
    """Live tasks only (a view of an unchanged task is the same object as before)."""
    started: float
