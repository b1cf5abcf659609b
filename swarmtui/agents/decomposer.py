"""The decomposer: drafts splits of live branches, and refines the best when none was accepted (docs/protocol.md, 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import trio

from swarmtui.plan.ops import MAX_PROPOSALS_PER_AUTHOR, PeerId, Proposal
from swarmtui.plan.state import Draft, Plan, Task

from .agent import Agent, Choice, Job, TaskKey
from .crowd import Crowd, scorers
from .drafting import Drafter, Order
from .prompting import Angle
from .ranking import among_first, best_first, judged, rank, refinements, standing, undecided

LOOK_AGAIN_S = 5.0
HESITATE_S = 1.5
"""It waits up to this long before it begins, and looks again, unless it comes first: so two seldom collide."""
DEFER_S = (20.0, 120.0)
"""Least and most time that others get for the draft that they say they write (half of the plan's patience)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A draft that somebody should write."""

    plan: Plan
    task: Task
    base: Draft | None
    """The draft to refine; None: a fresh one."""


def wants(plan: Plan, task: Task, me: PeerId, crowd: Crowd, defer: bool = True) -> Wanted | None:
    """Whether this task wants a draft of mine now, and which.

    Args:
        plan, task: looked at.
        me: own peer id.
        crowd: who is heard, and at what.
        defer: count the drafts that others say they are writing.
    """
    if not undecided(task):
        return None
    if sum(draft.op.author == me for draft in task.drafts.values()) >= MAX_PROPOSALS_PER_AUTHOR:
        return None
    there = standing(task)
    coming = crowd.doing("drafting", task.title, but=me) if defer else 0
    if len(there) < plan.policy.rivals:
        return Wanted(plan, task, None) if len(there) + coming < plan.policy.rivals else None
    if refinements(there) + coming >= plan.policy.rounds:
        return None
    if not judged(plan.policy, there, len(scorers(plan.policy, crowd))):
        return None
    return Wanted(plan, task, best_first(plan.policy, there)[0])


def choose_draft(
    tasks: Iterable[tuple[Plan, Task]], me: PeerId, crowd: Crowd, impatient: frozenset[TaskKey] = frozenset()
) -> Wanted | None:
    """The draft that helps most: tasks without any first, then the oldest plan, the highest task; then my own order."""
    found = [
        wanted for plan, task in tasks if (wanted := wants(plan, task, me, crowd, (plan.id, task.id) not in impatient))
    ]
    return min(
        found,
        key=lambda w: (
            bool(standing(w.task)),
            w.plan.op.order,
            w.task.depth,
            len(standing(w.task)),
            rank(me, w.task.id),
        ),
        default=None,
    )


def choose_angle(angles: tuple[Angle, ...], first: int, task: Task) -> Angle:
    """My first angle, or the next that no draft of this task has; all taken: the one after my own last."""
    taken = [_proposal(draft).angle for draft in task.drafts.values()]
    turned = [angles[(first + i) % len(angles)] for i in range(len(angles))]
    return min(turned, key=lambda angle: taken.count(angle.name))


def _proposal(draft: Draft) -> Proposal:
    body = draft.op.body
    if not isinstance(body, Proposal):
        raise TypeError(f"a draft's op says {type(body).__name__}")
    return body


class Decomposer(Agent):
    """Drafts from its own angle."""

    role = "decomposer"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        names = [angle.name for angle in self.settings.prompts.angles]
        wanted = self.settings.angle
        self._own_angle = Angle(name=wanted, hint=wanted, examples=(), usual=()) if wanted not in names else None
        self._drafter = Drafter(self.model, self.settings)
        self._seen: dict[TaskKey, tuple[int, float]] = {}
        """Per task, how many drafts stand and since when, by my own clock."""
        self._first = names.index(wanted) if wanted in names else self.rng.randrange(len(names))

    def interests(self, plan: Plan, task: Task) -> bool:
        return undecided(task)

    def choose(self, tasks: list[tuple[Plan, Task]], now: float) -> Choice:
        impatient = self._impatient(tasks, now)
        crowd = self.crowd(now)
        wanted = choose_draft(tasks, self.peer_id, crowd, impatient)
        if wanted is None:
            # Another's drafting is known by presence alone, so its end wakes nobody.
            return Choice(reason=_why_not(tasks), again_s=LOOK_AGAIN_S) if tasks else Choice(reason="no task to split")
        plan, task = wanted.plan, wanted.task

        async def run() -> None:
            # Others may have begun while this one hesitated.
            there = self.crowd(trio.current_time())
            if wants(plan, task, self.peer_id, there, (plan.id, task.id) not in impatient):
                await self._draft(wanted)

        missing = 1 if wanted.base else plan.policy.rivals - len(standing(task))
        missing -= crowd.doing("drafting", task.title, but=self.peer_id)
        at_once = among_first(crowd.free(self.role, ("drafting",)), self.peer_id, task.id, missing)
        hesitate = 0.0 if at_once else HESITATE_S
        return Choice(Job(plan, task, "drafting", run, lambda: self._useful(wanted), hesitate))

    def _impatient(self, tasks: list[tuple[Plan, Task]], now: float) -> frozenset[TaskKey]:
        """Tasks at which the number of drafts hasn't changed for so long that others' promises don't count any more."""
        counts = {(plan.id, task.id): (len(standing(task)), plan.policy.patience_s / 2) for plan, task in tasks}
        self._seen = {
            key: old if (old := self._seen.get(key)) and old[0] == count else (count, now)
            for key, (count, _) in counts.items()
        }
        least, most = DEFER_S
        return frozenset(
            key for key, (_, half) in counts.items() if now - self._seen[key][1] > min(most, max(least, half))
        )

    def _useful(self, wanted: Wanted) -> bool:
        plan, task = wanted.plan, wanted.task
        if plan.paused or not undecided(task):
            return False
        if wanted.base is not None:
            return not wanted.base.vetoed
        return len(standing(task)) < plan.policy.rivals

    async def _draft(self, wanted: Wanted) -> None:
        order = Order(wanted.plan, wanted.task, self._angle(wanted.task), wanted.base)
        await self.say(wanted.plan, await self._drafter(order, self.writer(), self.seed))

    def _angle(self, task: Task) -> Angle:
        angles = self.settings.prompts.angles
        taken = {_proposal(draft).angle for draft in task.drafts.values()}
        if self._own_angle is not None and self._own_angle.name and self._own_angle.name not in taken:
            return self._own_angle
        return choose_angle(angles, self._first, task)


def _why_not(tasks: list[tuple[Plan, Task]]) -> str:
    return "drafts wait for votes" if any(task.drafts for _, task in tasks) else "others draft"
