"""The observer: listens. Its peer is silent, so nothing is published: no op, no presence, no request."""

from __future__ import annotations

from swarmtui.plan.state import Plan, Task

from .agent import Agent, Choice


class Observer(Agent):
    """Does nothing, on purpose. Its peer has to be a silent one."""

    role = "observer"

    def interests(self, plan: Plan, task: Task) -> bool:
        return False

    def choose(self, tasks: list[tuple[Plan, Task]], now: float) -> Choice:
        return Choice(reason="listening")

    def show(self, doing: str, subject: str = "") -> None:
        """The screen alone is told."""
        if (doing, subject) != (self.status.doing, self.status.subject):
            self.status.doing, self.status.subject = doing, subject
            self.status.since = self.unix_seconds()
