"""What an agent reads of a plan before it works: the way down to a task, its neighbours, notes and the results that it
rests on. Pure functions of the plan."""

from __future__ import annotations

from typing import TypeAlias

from swarmtui.plan.ops import Note, Result, Steer
from swarmtui.plan.state import Plan, Task

from .prompting import as_clause
from .wording import cut, one_line

Part: TypeAlias = tuple[str, str]
"""A task's title and its result."""


def ancestors(plan: Plan, task: Task) -> list[Task]:
    """From the root down to the task's parent; empty for the root."""
    found: list[Task] = []
    parent = task.parent
    while parent is not None:
        above = plan.tasks[parent]
        found.append(above)
        parent = above.parent
    return found[::-1]


def steps_of(plan: Plan, branch: Task) -> list[Task]:
    """The steps of a branch's split, in order."""
    return [plan.tasks[child] for child in branch.children]


def siblings(plan: Plan, task: Task) -> list[Task]:
    """The other steps of the same split, in order; none for the root."""
    if task.parent is None:
        return []
    return [other for other in steps_of(plan, plan.tasks[task.parent]) if other is not task]


def split_places(plan: Plan, branch: Task, room: int) -> dict[str, str]:
    """What prompts say of a branch's split, by the names of its places in them, in about a third of `room` characters.

    Its steps' prompts and that of its merge begin with it: a model reads it once.
    """
    above = [*ancestors(plan, branch), branch]
    return {
        "goal": one_line(plan.goal.title),
        "path": cut(" › ".join(one_line(item.title) for item in above[1:]), room // 6),
        "split": cut("; ".join(one_line(step.title) for step in steps_of(plan, branch)), room // 6),
    }


def places(plan: Plan, task: Task, room: int) -> dict[str, str]:
    """What the prompts about a task have in common, by the names of its places in them, in about `room` characters."""
    no_split = dict.fromkeys(("goal", "path", "split"), "")
    return {
        **(no_split if task.parent is None else split_places(plan, plan.tasks[task.parent], room)),
        "notes": cut(" ".join(one_line(note) for note in notes(plan, task)), room // 6),
        "title": one_line(task.title),
        "task": as_clause(task.title),
    }


def awaited(plan: Plan, task: Task) -> bool:
    """Whether another step of the same split comes after this one."""
    return any(task.id in other.after for other in siblings(plan, task))


def planned(plan: Plan, task: Task) -> list[str]:
    """What a split of this task must not say again: the goal and what the task is part of, its own neighbours and every
    other task that stands in the plan."""
    above = ancestors(plan, task)
    others = [other.title for other in plan.tasks.values() if other.live and other not in above and other is not task]
    return [*(item.title for item in above), *others]


def notes(plan: Plan, task: Task) -> list[str]:
    """The operator's words for this task and for what it's part of, oldest first from the root down."""
    found: list[str] = []
    for item in [*ancestors(plan, task), task]:
        for op in item.notes:
            if isinstance(op.body, Steer) and isinstance(op.body.act, Note):
                found.append(op.body.act.text)
    return found


def dependencies(plan: Plan, task: Task) -> list[Part]:
    """Title and outcome of each task that this one, or what it's part of, comes after."""
    seen: dict[bytes, None] = {}
    for item in [*ancestors(plan, task), task]:
        # In the order of the split, as in its merge: what a draft gave has any.
        seen.update(dict.fromkeys(step.id for step in siblings(plan, item) if step.id in item.after))
    return [part for other in seen for part in outcome(plan, plan.tasks[other])]


def outcome(plan: Plan, task: Task) -> list[Part]:
    """A task's result; for a branch without one of its own, those of its children, with the way in the title."""
    if task.result is not None and isinstance(task.result.body, Result):
        return [(task.title, task.result.body.output)]
    return [
        (f"{task.title} › {title}", text) for child in task.children for title, text in outcome(plan, plan.tasks[child])
    ]


def parts_of(plan: Plan, task: Task) -> list[Part]:
    """What a branch is merged from: its children's outcomes, in order, without the branch's own title in the way."""
    return [part for child in task.children for part in outcome(plan, plan.tasks[child])]
