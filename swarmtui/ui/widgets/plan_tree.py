"""The plan as a tree of lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.content import Content

from swarmtui.plan.ops import TaskId
from swarmtui.plan.state import State
from swarmtui.ui.actions import Keys
from swarmtui.ui.states import look, mended, status
from swarmtui.ui.text import FAINT, join, line, sides
from swarmtui.ui.widgets.lines import Lines
from swarmtui.view import PlanView, TaskView


class PlanTree(Lines):
    """Tasks with their state; finished branches fold by themselves, until the person unfolds them."""

    HINT: ClassVar[str] = "No plan yet: press {new_goal} and give the swarm a goal."

    def __init__(self, keys: Keys, now: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(keys, id=id, classes="panel")
        self.now = now
        self._own_keys = keys
        self.plan: PlanView | None = None
        self.filter = ""
        self.matches: frozenset[TaskId] = frozenset()
        self._choice: dict[TaskId, bool] = {}
        """Branches that the person folded (True) or unfolded (False)."""

    def update_plan(self, plan: PlanView | None) -> None:
        """Show a newer picture of the plan, or another plan."""
        if plan is not self.plan:
            if plan is None or self.plan is None or plan.id != self.plan.id:
                self._choice.clear()
            self.plan = plan
            self._relist()
        else:
            self.refresh()

    def chosen(self) -> TaskView | None:
        """Return the task under the cursor."""
        return self.plan.tasks.get(self.key) if self.plan and isinstance(self.key, bytes) else None

    def select(self, task: TaskId) -> bool:
        """Put the cursor on a task, unfolding what hides it."""
        if self.plan is None or task not in self.plan.tasks:
            return False
        parent = self.plan.tasks[task].parent
        while parent is not None and parent in self.plan.tasks:
            if self.folded(self.plan.tasks[parent]):
                self._choice[parent] = False
            parent = self.plan.tasks[parent].parent
        self._relist()
        return self.move_to(task)

    # Folding

    def folded(self, task: TaskView) -> bool:
        """Say whether a branch hides its children."""
        finished = task.state is State.DONE and task.parent is not None
        return self._choice.get(task.id, finished)

    def _fold(self, task: TaskView, on: bool) -> None:
        self._choice[task.id] = on
        self._relist()

    def action_fold(self) -> None:
        if (task := self.chosen()) and task.children:
            self._fold(task, not self.folded(task))

    def action_left(self) -> None:
        task = self.chosen()
        if task is None:
            return
        if task.children and not self.folded(task):
            self._fold(task, True)
        elif task.parent is not None:
            self.move_to(task.parent)

    def action_right(self) -> None:
        task = self.chosen()
        if task and task.children:
            if self.folded(task):
                self._fold(task, False)
            else:
                self.move_to(task.children[0])

    # Finding

    def set_filter(self, text: str) -> None:
        """Show only tasks with this text in title, state, holder or stall, and what stands above them; '' shows all."""
        self.filter = text.strip().casefold()
        self._relist()
        if self.matches and self.key not in self.matches:
            self.next_match(1)

    def next_match(self, step: int) -> None:
        """Move to the next (1) or previous (-1) match, round the end."""
        places = [i for i, key in enumerate(self.keys) if key in self.matches]
        if not places:
            return
        if step > 0:
            self._go(next((i for i in places if i > self.cursor), places[0]))
        else:
            self._go(next((i for i in reversed(places) if i < self.cursor), places[-1]))

    def _found(self, task: TaskView) -> bool:
        words = f"{task.title}\n{look(task).word}\n{task.state.value}\n{task.status}\n{task.holder}\n{task.needs}"
        words += f"\n{mended(task.stalled, self._own_keys)}" if task.stalled else ""
        return self.filter in words.casefold()

    # Lines

    def _relist(self) -> None:
        plan = self.plan
        if plan is None or plan.root not in plan.tasks:
            self.matches = frozenset()
            self.show(())
            return
        kept: set[TaskId] | None = None
        self.matches = frozenset()
        if self.filter:
            self.matches = frozenset(t.id for t in plan.tasks.values() if self._found(t))
            kept = {plan.root}
            for found in self.matches:
                here: TaskId | None = found
                while here is not None and here not in kept:
                    kept.add(here)
                    here = plan.tasks[here].parent if here in plan.tasks else None
        keys: list[TaskId] = []
        seen: set[TaskId] = set()
        stack = [plan.root]
        while stack:
            key = stack.pop()
            task = plan.tasks.get(key)
            if task is None or key in seen or (kept is not None and key not in kept):
                continue
            seen.add(key)
            keys.append(key)
            if kept is not None or not self.folded(task):
                stack.extend(reversed(task.children))
        self.show(tuple(keys))

    def draw(self, index: int, width: int) -> Content:
        key = self.keys[index]
        task = self.plan.tasks.get(key) if self.plan and isinstance(key, bytes) else None
        if task is None:
            return Content("")
        face = look(task)
        arrow = ("▸ " if self.folded(task) and not self.filter else "▾ ") if task.children else "  "
        title = line(task.title, "bold" if task.depth == 0 else "")
        if self.filter and task.id in self.matches:
            title = title.stylize("underline")
        left = Content.assemble(("  " * task.depth + arrow, FAINT), (face.glyph, face.colour), " ", title)
        return sides(left, join(status(task, self.now(), self._own_keys)), width - 1, 0.45)
