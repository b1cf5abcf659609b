"""Where ops wait whose plan isn't known yet: bounded, and shared fairly among authors."""

from __future__ import annotations

from .ops import Op, OpId, PeerId
from .shelf import weight

PEN_BYTES = 16 * 1024 * 1024
"""Memory for all that waits."""
SHARE = 4
"""One author may fill at most this part of the pen."""


class Pen:
    """Ops of unknown plans. What doesn't fit is refused: repair brings it again when the plan is known.

    Args:
        limit: bytes of memory for all that waits (see :func:`swarmtui.plan.shelf.weight`).
    """

    def __init__(self, limit: int = PEN_BYTES) -> None:
        self._limit = limit
        self._plans: dict[OpId, dict[OpId, Op]] = {}
        self._authors: dict[PeerId, int] = {}
        self.weight = 0

    def __len__(self) -> int:
        return sum(map(len, self._plans.values()))

    def hold(self, op: Op) -> bool:
        """Keep an op until its plan comes. False if there's no room for it."""
        waiting = self._plans.get(op.plan, {})
        if op.id in waiting:
            return True
        cost = weight(op)
        of_author = self._authors.get(op.author, 0) + cost
        if self.weight + cost > self._limit or of_author > self._limit // SHARE:
            return False
        self._plans.setdefault(op.plan, waiting)[op.id] = op
        self._authors[op.author] = of_author
        self.weight += cost
        return True

    def release(self, plan: OpId) -> list[Op]:
        """Take out what waits for a plan."""
        ops = list(self._plans.pop(plan, {}).values())
        for op in ops:
            cost = weight(op)
            self.weight -= cost
            self._authors[op.author] -= cost
            if not self._authors[op.author]:
                del self._authors[op.author]
        return ops
