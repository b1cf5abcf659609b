"""What the simulator notices of the plans while they grow: at every peer, at every change."""

from __future__ import annotations

from dataclasses import dataclass, field

import trio

from swarmtui.plan.ops import OpId, PeerId, TaskId
from swarmtui.plan.state import Changes, Plan

Key = tuple[OpId, TaskId]


@dataclass(slots=True)
class Orphan:
    """A task whose holder was killed or stopped."""

    claim: OpId
    author: PeerId
    since: float
    """When the holder fell silent."""
    waited: float = 0.0
    """How long a capable executor was idle while nothing else was wrong, and the task lay there."""


@dataclass(slots=True)
class Notebook:
    """Shared by the ears of one run."""

    winners: dict[Key, set[OpId]] = field(default_factory=dict)
    """Every draft that some honest peer ever showed as a task's winner."""
    orphans: dict[Key, Orphan] = field(default_factory=dict)
    takeovers: list[float] = field(default_factory=list)
    """Virtual seconds from a holder's last breath to the next claim, or result by another."""
    longest_wait: float = 0.0
    """The longest that an orphan waited (see there)."""
    stirred: float = 0.0
    """When an op last came to some honest peer."""
    longest_rest: float = 0.0
    """The longest time in which no honest peer learned anything, from `watch_rests` on, while a plan wasn't done."""
    watch_rests: bool = False

    def orphan(self, plan: Plan, author: PeerId) -> None:
        """A member falls silent: note what it holds."""
        for task in plan.tasks.values():
            if task.live and task.result is None and task.holder is not None and task.holder.author == author:
                self.orphans[plan.id, task.id] = Orphan(task.holder.id, author, trio.current_time())

    def returned(self, author: PeerId) -> None:
        """It's back and may go on with what it held: that's no takeover."""
        for key in [key for key, orphan in self.orphans.items() if orphan.author == author]:
            del self.orphans[key]


class Ear:
    """Listens at one peer, as its watches do, but at once."""

    presence = False

    def __init__(self, plans: dict[OpId, Plan], book: Notebook) -> None:
        self._plans = plans
        self._book = book

    def tell(self, changes: Changes) -> None:
        book, now = self._book, trio.current_time()
        if changes.added:
            if book.watch_rests:
                book.longest_rest = max(book.longest_rest, now - book.stirred)
            book.stirred = now
        for key in changes.tasks:
            plan = self._plans.get(key[0])
            task = plan.tasks.get(key[1]) if plan is not None else None
            if task is None:
                continue
            if task.winner is not None:
                book.winners.setdefault(key, set()).add(task.winner.op.id)
            orphan = book.orphans.get(key)
            if orphan is not None:
                taken = task.holder is not None and task.holder.author != orphan.author
                done = task.result is not None and task.result.author != orphan.author
                if taken or done:
                    book.takeovers.append(now - orphan.since)
                if taken or task.result is not None or not task.live:
                    del book.orphans[key]
