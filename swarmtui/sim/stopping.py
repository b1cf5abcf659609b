"""Where the simulator reaches into trio: to stop a peer as SIGSTOP does.

This rests on trio's internals, so it's kept here, small, and tested; as are the fixed order of tasks
(:func:`swarmtui.peer.memory.reproducible`, which sets what trio's own support for Hypothesis sets) and, in `clock.py`,
the rare look at I/O.

A stopped process runs nothing: its timers are late, what it's sent waits in the socket. Under one clock that means that
none of the peer's tasks is run. A task that becomes runnable (an event, a timeout) while its peer is stopped is taken
out of trio's run queue again and put back when the peer goes on: then every timer that has passed meanwhile fires
at once, just as after SIGCONT.
"""

from __future__ import annotations

from contextvars import ContextVar

import trio
from trio._core._run import GLOBAL_RUN_CONTEXT

belongs_to: ContextVar[int] = ContextVar("belongs_to", default=-1)
"""The member that a task works for. Set in a member's first task, inherited by those that it starts."""


class Stopper(trio.abc.Instrument):
    """Stops members of a run and lets them go on."""

    def __init__(self) -> None:
        self._stopped: dict[int, list[trio.lowlevel.Task]] = {}
        self._going_on: dict[int, trio.Event] = {}

    def is_stopped(self, member: int) -> bool:
        return member in self._stopped

    def stop(self, member: int) -> None:
        """Run none of its tasks from now on."""
        if member in self._stopped:
            return
        if not self._stopped:
            trio.lowlevel.add_instrument(self)
        queue = GLOBAL_RUN_CONTEXT.runner.runq
        mine = [task for task in queue if task.context.get(belongs_to) == member]
        for task in mine:
            queue.remove(task)
        self._stopped[member] = mine
        self._going_on[member] = trio.Event()

    def go_on(self, member: int) -> None:
        """Run them again."""
        if member not in self._stopped:
            return
        GLOBAL_RUN_CONTEXT.runner.runq.extend(self._stopped.pop(member))
        self._going_on.pop(member).set()
        if not self._stopped:
            trio.lowlevel.remove_instrument(self)

    async def gone_on(self, member: int) -> None:
        """Wait until it isn't stopped."""
        if member in self._going_on:
            await self._going_on[member].wait()

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """Called by trio just behind putting a task at the end of its run queue."""
        stopped = self._stopped.get(task.context.get(belongs_to, -1))
        if stopped is not None:
            queue = GLOBAL_RUN_CONTEXT.runner.runq
            if queue and queue[-1] is task:
                queue.pop()
                stopped.append(task)
