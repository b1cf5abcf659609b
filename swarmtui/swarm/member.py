"""One local peer with, mostly, an agent in it: how it lives, leaves and crashes."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import trio

from swarmtui.agents import Agent
from swarmtui.peer.network import Network
from swarmtui.peer.peer import Peer
from swarmtui.view import AgentState, Role

from .errors import first
from .identities import Lease
from .models import Chosen

log = logging.getLogger(__name__)

LEAVE_SECONDS = 3.0
"""An agent that can't finish leaving in this time is cut off."""


@dataclass(eq=False)
class Member:
    """A peer of this program. `live` runs it until `scope` is cancelled."""

    role: Role
    name: str
    peer: Peer
    network: Network
    lease: Lease
    agent: Agent | None
    """None: the observer's and the operator's peer act only when asked."""
    brain: Chosen | None = None
    """The agent's model."""
    state: AgentState = "starting"
    fault: str = ""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    ended: trio.Event = field(default_factory=trio.Event)

    async def live(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the peer and its agent.

        What goes wrong in either ends this member alone and stands in `fault`, unless it happens before the peer
        runs: then it's raised to the starter.
        """
        started = False
        try:
            with self.scope:
                async with trio.open_nursery() as nursery:
                    await nursery.start(self.peer.run)
                    if self.agent is not None:
                        await nursery.start(self.agent.run)
                    self.state = "running"
                    started = True
                    task_status.started()
        except Exception as error:
            log.exception("%s (%s) ended", self.name, self.role)
            cause = first(error)
            self.fault = f"{type(cause).__name__}: {cause}"
            if not started:
                raise
        finally:
            self.state = "gone"
            self.lease.close()
            if self.brain is not None:
                self.brain.close()
            self.ended.set()

    async def leave(self) -> None:
        """Give back what it claimed, say goodbye, end. Returns when it has ended, at most about 6 s later."""
        self.state = "leaving"
        if self.agent is not None:
            with trio.move_on_after(LEAVE_SECONDS):
                await self.agent.leave()
        self.scope.cancel()
        with trio.move_on_after(LEAVE_SECONDS):
            await self.ended.wait()

    async def crash(self) -> None:
        """End without a word: no release, no goodbye, connections dropped."""
        self.peer.abrupt = True
        self.scope.cancel()
        with trio.move_on_after(LEAVE_SECONDS):
            await self.ended.wait()
