"""What a peer takes from its journal, and when: at the start the plans that are taken up, another once it's met again
or asked for.

A plan that isn't taken up stays on disk. But the swarm may still hold it and bring it back, and then what the journal
knows of it counts: own words above all, which may stand there alone (said while cut off, or just before a crash).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import trio

from swarmtui.plan.ops import Op, OpId

from .journal import Journal
from .store import Store

SLICE = 200
"""Ops taken at once; between slices other tasks run."""


class Recall:
    """Brings ops from the journal into the store."""

    def __init__(self, store: Store, journal: Journal | None, plans: Collection[OpId] | None) -> None:
        """`plans`: those taken up at the start; None: all."""
        self._store = store
        self._journal = journal
        self._plans = plans
        self._left: set[OpId] = set()
        self._met: list[OpId] = []
        self._meeting = trio.Event()

    async def start(self) -> None:
        """Load the plans that are taken up; of the others note which own numbers are used."""
        if self._journal is None:
            return
        taken: list[Op] = []
        for op in self._journal.load():
            if self._plans is None or op.plan in self._plans:
                taken.append(op)
            else:
                self._left.add(op.plan)
                self._store.note_own(op)
        await self._load(taken)

    def met(self, plans: Iterable[OpId]) -> None:
        """These plans are new or changed: recall what was left of them, soon."""
        back = self._left.intersection(plans)
        if back:
            self._left -= back
            self._met += sorted(back)
            self._meeting.set()

    async def run(self) -> None:
        """Recall plans that come back, until cancelled."""
        while True:
            await self._meeting.wait()
            self._meeting = trio.Event()
            met, self._met = self._met, []
            for plan in met:
                if self._journal is not None:
                    await self._load(self._journal.load(plan))

    async def _load(self, ops: Iterable[Op]) -> None:
        slice_: list[Op] = []
        for op in ops:
            slice_.append(op)
            if len(slice_) == SLICE:
                self._store.load(slice_)
                slice_ = []
                await trio.lowlevel.checkpoint()
        self._store.load(slice_)
