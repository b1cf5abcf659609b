"""The agents panel: who is there and what each does."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.content import Content

from swarmtui.ui.actions import Keys
from swarmtui.ui.states import ROLES, agent_state, busy
from swarmtui.ui.text import DIM, FAINT, age, column, join, line, sides
from swarmtui.ui.widgets.lines import Lines
from swarmtui.view import AgentView


class AgentList(Lines):
    """One line per agent."""

    HINT: ClassVar[str] = (
        "No agents: press {add_decomposer} for a decomposer, {add_scorer} for a scorer, {add_executor} for an executor."
    )

    def __init__(self, keys: Keys, now: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(keys, id=id, classes="panel")
        self.now = now
        self.agents: dict[str, AgentView] = {}
        self._name_width = 4
        self._mixed = False
        """The agents use different models, so each line tells which."""

    def update_agents(self, agents: tuple[AgentView, ...]) -> None:
        """Show who is there now."""
        self.agents = {agent.peer: agent for agent in agents}
        widest = max((line(a.name).cell_length for a in agents), default=4)
        self._name_width = max(4, min(12, widest))
        self._mixed = len({a.model for a in agents if a.model}) > 1
        self.show(tuple(self.agents))

    def agent(self) -> AgentView | None:
        """Return the agent under the cursor."""
        return self.agents.get(self.key) if isinstance(self.key, str) else None

    def draw(self, index: int, width: int) -> Content:
        agent = self.agents[str(self.keys[index])]
        letter, colour = ROLES.get(agent.role, ("?", DIM))
        word, tone = agent_state(agent)
        gone = agent.state == "gone"
        left = Content.assemble(
            (letter, FAINT if gone else f"bold {colour}"),
            " ",
            column(agent.name, self._name_width, FAINT if gone else ""),
            "  ",
            column(word, 9, tone),
            " ",
            self._matter(agent),
        )
        room = max(width - left.cell_length - 3, int(width * 0.45) - 3)
        return sides(left, self._figures(agent, width, room), width - 1, 0.45)

    def _matter(self, agent: AgentView) -> Content:
        """What it's at; while it rests, rather what went wrong."""
        if agent.fault:
            return line(agent.fault, "$error")
        if agent.trouble and agent.state == "running" and not busy(agent):
            return line(agent.trouble, "$warning")
        return line("" if agent.state == "gone" else agent.subject, DIM)

    def _figures(self, agent: AgentView, width: int, room: int) -> Content:
        """What stands at the end of the line: as much as there's room for, the last first to go."""
        parts: list[Content | tuple[str, str] | str] = []
        if not agent.local:
            parts.append(("elsewhere", "$secondary"))
        if self._mixed and agent.model and width >= 44:
            parts.append((line(agent.model).truncate(16, ellipsis=True).plain, FAINT))
        if agent.tokens_per_second >= 0.05 and agent.state == "running":
            parts.append((f"{agent.tokens_per_second:.0f} tok/s", DIM))
        if agent.since and width >= 48:
            parts.append((f"{age(self.now() - agent.since):>6}", FAINT))
        if width >= 64:
            parts.append((f"{agent.ops:>3} {'op ' if agent.ops == 1 else 'ops'}", FAINT))
        while len(parts) > 1 and join(*parts).cell_length > room:
            parts.pop()
        return join(*parts)
