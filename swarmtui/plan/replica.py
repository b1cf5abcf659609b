"""The set of ops that a peer holds, and the plans that they come to.

The picture is a pure function of the set: whatever the order, the batches and the repetitions in which ops are added,
two replicas that hold the same ops show the same, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge

from . import shelf
from .book import PlanBook
from .canonical import picture
from .ops import Goal, Op, OpId, PeerId
from .pen import PEN_BYTES, Pen
from .shelf import Shelf
from .state import Changes, Plan

AUTHOR_BUDGET = 32 * 1024 * 1024
TOTAL_BUDGET = 512 * 1024 * 1024
_BLAMED = 1_000
"""Authors that are named in `refused_by`, at most."""


class Replica:
    """Everything one peer knows of all plans of its swarm.

    The budgets are this replica's own protection, no part of the protocol: what they refuse is counted in `refused`,
    and a replica that refused something may differ from others. They count memory as
    :func:`swarmtui.plan.shelf.weight` does.

    Args:
        author_budget: bytes that the ops of one author may take, over all plans.
        total_budget: bytes that all ops may take.
        pen_limit: bytes for ops of plans that aren't known yet.
    """

    def __init__(
        self, author_budget: int = AUTHOR_BUDGET, total_budget: int = TOTAL_BUDGET, pen_limit: int = PEN_BYTES
    ) -> None:
        self.plans: dict[OpId, Plan] = {}
        """Kept current; to be read only."""
        self.refused: Counter[str] = Counter()
        """Ops that weren't kept, by reason."""
        self.refused_by: dict[PeerId, Counter[str]] = {}
        """The same, by author."""
        self._author_budget = author_budget
        self._total_budget = total_budget
        self._books: dict[OpId, PlanBook] = {}
        self._ops: dict[OpId, Op] = {}
        self._shelves: dict[OpId, dict[PeerId, Shelf]] = {}
        self._weights: dict[PeerId, int] = {}
        self._weight = 0
        self._total = 0
        self._pen = Pen(pen_limit)

    # -- adding

    def add(self, op: Op) -> Changes:
        """Add an op that :func:`swarmtui.plan.envelope.open_op` has checked. Adding it again changes nothing."""
        return self.add_many((op,))

    def add_many(self, ops: Iterable[Op]) -> Changes:
        """Add several ops; tasks are brought up to date once, behind the last one."""
        changes, touched = Changes(), set()
        for op in ops:
            if op.id in self._ops:
                continue
            book = self._books.get(op.plan)
            if book is not None:
                self._accept(op, book, changes)
                touched.add(book)
            elif isinstance(op.body, Goal):
                self._begin(op, touched, changes)
            elif not self._pen.hold(op):
                self._refuse(op, "no room for ops of unknown plans")
        for book in touched:
            book.settle(changes)
        return changes

    def _begin(self, goal: Op, touched: set[PlanBook], changes: Changes) -> None:
        if not self._keep(goal):
            return
        book = self._books[goal.plan] = PlanBook(goal)
        shelves = self._shelves[goal.plan] = {goal.author: Shelf()}
        shelves[goal.author].place(goal)
        self.plans[goal.plan] = book.plan
        book.plan.ops = 1
        touched.add(book)
        changes.added.append(goal)
        changes.plans.add(goal.plan)
        for waiting in self._pen.release(goal.plan):
            self._accept(waiting, book, changes)

    def _accept(self, op: Op, book: PlanBook, changes: Changes) -> None:
        """Take an op of a known plan, that isn't held yet, if there's room."""
        if not self._keep(op):
            return
        shelves = self._shelves[op.plan]
        place = shelves.get(op.author)
        if place is None:
            place = shelves[op.author] = Shelf()
        book.plan.ops += 1
        place.place(op)
        if place.faulty and op.author not in book.plan.faulty:
            book.plan.faulty.add(op.author)
            changes.plans.add(op.plan)
        book.add(op, changes)

    def _keep(self, op: Op) -> bool:
        """Enter an op into the books of what is held, if there's room."""
        cost = shelf.weight(op)
        of_author = self._weights.get(op.author, 0) + cost
        if of_author > self._author_budget:
            self._refuse(op, "the author's budget is used up")
            return False
        if self._weight + cost > self._total_budget:
            self._refuse(op, "the replica is full")
            return False
        self._weights[op.author] = of_author
        self._weight += cost
        self._ops[op.id] = op
        self._total += shelf.print_of(op)
        return True

    def _refuse(self, op: Op, reason: str) -> None:
        self.refused[reason] += 1
        if op.author in self.refused_by or len(self.refused_by) < _BLAMED:
            self.refused_by.setdefault(op.author, Counter())[reason] += 1

    # -- asking

    @property
    def count(self) -> int:
        """Ops held, of known plans."""
        return len(self._ops)

    @property
    def fingerprint(self) -> bytes:
        """16 bytes that are equal in replicas that hold the same ops."""
        return shelf.fingerprint(self._total)

    @property
    def weight(self) -> int:
        """Bytes of memory that the ops held take, roughly, those in the pen included."""
        return self._weight + self._pen.weight

    @property
    def waiting(self) -> int:
        """Ops of unknown plans that wait in the pen."""
        return len(self._pen)

    def get(self, op_id: OpId) -> Op | None:
        """An op that is held."""
        return self._ops.get(op_id)

    def grounded(self, op: Op) -> bool:
        """Whether an op means something: it's held, and so is all that it refers to, of the right kind and earlier."""
        book = self._books.get(op.plan)
        return book is not None and op.id in book.grounded

    def ops(self, plan: OpId | None = None) -> Iterator[Op]:
        """The ops held (of one plan), earliest first."""
        found = self._ops.values() if plan is None else (op for op in self._ops.values() if op.plan == plan)
        return iter(sorted(found, key=lambda op: op.order))

    def next_seq(self, plan: OpId, author: PeerId) -> int:
        """The sequence number for the author's next op in a plan (0 for a goal, whose plan isn't known: b"")."""
        place = self._shelves.get(plan, {}).get(author)
        return 0 if place is None else place.top + 1

    def picture(self, plan: OpId) -> bytes:
        """Canonical bytes of everything that is derived for a plan.

        Raises:
            KeyError: the plan isn't known.
        """
        return picture(self.plans[plan])

    # -- comparing with another peer

    def vector(self) -> dict[OpId, dict[PeerId, int]]:
        """For each plan and author: how many ops are held without a gap from sequence number 0 on."""
        return {
            plan: {author: place.contiguous for author, place in shelves.items()}
            for plan, shelves in self._shelves.items()
        }

    def lacking(self, their_vector: Mapping[OpId, Mapping[PeerId, int]]) -> Iterator[Op]:
        """What another peer seems to lack, given its vector: goals first, then earliest first.

        Lazy: take as many as fit into an answer.
        """
        streams = []
        for plan, shelves in self._shelves.items():
            theirs = their_vector.get(plan, {})
            goal = self.plans[plan].op
            if not theirs.get(goal.author):
                yield goal
            for author, place in shelves.items():
                streams.append(place.since(max(0, theirs.get(author, 0))))
        seen_goals = self.plans
        for op in merge(*streams, key=lambda op: op.order):
            if op.id not in seen_goals:
                yield op
