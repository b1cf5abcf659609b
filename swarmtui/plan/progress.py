"""How far a plan is, and why it doesn't move: pure functions of a plan and of who is alive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from .narrative import plural
from .ops import PeerId, TaskId
from .state import Draft, Plan, State, Task
from .views import Stall


class Living(msgspec.Struct, frozen=True):
    """The peers that can be heard now, by what they can do."""

    decomposers: frozenset[PeerId] = frozenset()
    scorers: frozenset[PeerId] = frozenset()
    executors: Mapping[PeerId, frozenset[str]] = {}
    """Executor → its skills."""


def live_tasks(plan: Plan) -> Iterator[Task]:
    """The live tasks from the root down, each before its children, siblings in order."""
    stack: list[TaskId] = [plan.id]
    while stack:
        task = plan.tasks[stack.pop()]
        yield task
        stack.extend(reversed(task.children))


def counts(plan: Plan) -> dict[str, int]:
    """The figures of the header: leaves, done, working, voting, ready, failed (leaves), drafts, ops.

    Work is a leaf, or a merge that is claimed. Leaves of branches that aren't split yet can't be known.
    """
    seen: Counter[str] = Counter()
    for task in live_tasks(plan):
        seen["drafts"] += len(task.drafts)
        seen["leaves"] += task.leaf
        seen["done"] += task.leaf and task.state is State.DONE
        seen["working"] += task.state is State.CLAIMED
        seen["voting"] += task.state is State.DRAFT
        seen["ready"] += task.state is State.READY
        seen["failed"] += task.state is State.FAILED
    keys = ("leaves", "done", "working", "voting", "ready", "failed", "drafts")
    return {key: seen[key] for key in keys} | {"ops": plan.ops}


def stall(plan: Plan, task: Task, living: Living) -> Stall | None:
    """Why nobody who is alive can move this task; None if somebody can."""
    match task.state:
        case State.OPEN if not living.decomposers:
            return _nobody(living, *_TURNS)
        case State.DRAFT:
            return _stalled_vote(plan, task, living)
        case State.READY | State.CLAIMED:
            return _stalled_work(task, living)
        case State.FAILED:
            return Stall(f"given back {plural(task.releases, 'time')}", "press {retry_task} to try again")
        case _:
            return None


_TURNS = ("decomposer", "scorer", "executor")
"""The roles, in the order of their turns at a task."""


def _nobody(living: Living, *roles: str) -> Stall:
    """Which of these roles nobody plays."""
    lacking = [role for role in roles if not getattr(living, f"{role}s")]
    keys = ", ".join(f"{{add_{role}}}" for role in lacking)
    return Stall(f"no {', '.join(lacking)}", f"press {keys} to add {'one' if len(lacking) == 1 else 'them'}")


def _stalled_vote(plan: Plan, task: Task, living: Living) -> Stall | None:
    drafts = [draft for draft in task.drafts.values() if draft.counts and not draft.vetoed]
    need = plan.policy.need
    if any(len(draft.approvals) + len(possible_voters(plan, draft, living)) >= need for draft in drafts):
        return None
    have = len(living.scorers)
    if plan.policy.scorers:
        reason = f"too few of the scorers that the policy names are there, quorum {need}"
        return Stall(reason, "press {policy} to change the policy")
    if not have and not living.executors:
        return _nobody(living, "scorer", "executor")
    reason = f"{plural(have, 'scorer')}, quorum {need}"
    return Stall(reason, "press {add_scorer} to add a scorer, or {policy} to lower the quorum")


def possible_voters(plan: Plan, draft: Draft, living: Living) -> set[PeerId]:
    """The living scorers whose approval of this draft would count and isn't there yet."""
    allowed = living.scorers & set(plan.policy.scorers) if plan.policy.scorers else living.scorers
    return set(allowed) - {draft.op.author} - set(draft.approvals)


def _stalled_work(task: Task, living: Living) -> Stall | None:
    if not living.executors:
        return _nobody(living, "executor")
    if not any(task.step.needs in skills for skills in living.executors.values()):
        return Stall(f"no executor has the skill '{task.step.needs}'", "press {form_executor} to add one that has")
    return None


def plan_stalls(plan: Plan, living: Living) -> tuple[Stall, ...]:
    """Why the whole plan can't go on; empty while something moves, or the plan is done or paused."""
    if plan.done or plan.paused:
        return ()
    found: dict[Stall, list[str]] = {}
    for task in live_tasks(plan):
        if task.state in (State.OPEN, State.DRAFT, State.READY, State.CLAIMED, State.FAILED):
            here = stall(plan, task, living)
            if here is None:
                return ()
            found.setdefault(here, []).append(task.title)
    return tuple(Stall(f"{_some(titles)}: {each.reason}", each.remedy) for each, titles in found.items())


def _some(titles: list[str]) -> str:
    first = f"“{titles[0]}”"
    return first if len(titles) == 1 else f"{first} and {len(titles) - 1} more"
