"""A journal in memory that lives longer than its peer, and can lose what it holds."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from swarmtui.plan.ops import Op, OpId


class Disk:
    """What one member has on disk: ops in the order in which they were written."""

    def __init__(self) -> None:
        self.ops: dict[OpId, Op] = {}
        self.writes = 0
        self.damaged = False

    def suffer(self, fate: str, rng: random.Random) -> None:
        """Lose something in a crash: see :class:`swarmtui.sim.scenario.Crash`. `torn` is what a damaged file comes to:
        it's set aside, and a new one begun."""
        if fate in ("lost", "torn"):
            self.ops.clear()
            self.damaged = fate == "torn"
        elif fate == "stale":
            kept = len(self.ops) - rng.randint(0, max(1, len(self.ops) // 3))
            self.ops = dict(list(self.ops.items())[: max(0, kept)])


class DiskJournal:
    """One run's access to a disk (the interface of :class:`swarmtui.peer.journal.Journal`)."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.dead = False
        """Its process was killed: nothing reaches the disk any more."""
        self.degraded = ""
        self.notices: list[str] = []
        self.damaged, disk.damaged = disk.damaged, False

    def append(self, ops: Iterable[Op]) -> bool:
        if not self.dead:
            for op in ops:
                self._disk.ops.setdefault(op.id, op)
            self._disk.writes += 1
        return True

    def load(self, plan: OpId | None = None) -> Iterator[Op]:
        found = [op for op in self._disk.ops.values() if plan is None or op.plan == plan]
        return iter(sorted(found, key=lambda op: op.order))

    def close(self) -> None:
        pass
