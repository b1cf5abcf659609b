"""Tasks and drafts with what a replica needs to keep them current. Others see `state.Task` and `state.Draft`."""

from __future__ import annotations

from dataclasses import dataclass, field

from .ops import Hlc, Op, OpId, PeerId
from .ordered import Ordered, put
from .rules import ClaimKey, ReleaseKey, ResultKey
from .state import Draft, Task

Entry = tuple[Hlc, OpId, Op]
"""An op in the one order among ops."""


NO_DRAFTS: dict[OpId, Draft] = {}
"""What most tasks have. Shared, never filled."""


@dataclass(slots=True, eq=False, repr=False)
class Ballot(Draft):
    """A draft with every vote and word of the operator on it."""

    node: Node = None  # type: ignore[assignment]  # always given; dataclass order wants a default
    tasks: tuple[Node, ...] = ()
    """The tasks that its steps became, in order."""
    cast: dict[PeerId, Ordered[Entry]] = field(default_factory=dict)
    """Each scorer's votes, in order, also of scorers that no policy allows."""
    firsts: dict[PeerId, Hlc] = field(default_factory=dict)
    """Each scorer's first approval."""
    tally: Ordered[tuple[Hlc, PeerId]] = ()
    """The same, earliest first."""
    words: Ordered[tuple[Hlc, OpId, bool]] = ()
    """The operator's picks (True) and vetoes (False), in order."""
    picked: tuple[Hlc, OpId] | None = None
    """Its latest pick; None if none, or if it's vetoed."""


@dataclass(slots=True, eq=False, repr=False)
class Work:
    """What was said of a task by those who do it, and the operator's retries. What's rare is made when first needed."""

    claims: Ordered[ClaimKey] = ()
    results: Ordered[ResultKey] = ()
    followers: dict[OpId, Ordered[ClaimKey]] | None = None
    """Claims by the claim that they take over."""
    released: dict[OpId, ReleaseKey] | None = None
    """First release of each released claim."""
    retried_at: Hlc = -1
    """The latest retry; -1 without one."""

    def put_claim(self, key: ClaimKey, prior: OpId) -> None:
        """Add a claim."""
        self.claims = put(self.claims, key, True)
        if prior:
            if self.followers is None:
                self.followers = {}
            self.followers[prior] = put(self.followers.get(prior, ()), key, True)

    def put_release(self, claim: OpId, key: ReleaseKey) -> None:
        """Add a release."""
        if self.released is None:
            self.released = {}
        self.released[claim] = min(key, self.released.get(claim, key))

    def put_retry(self, at: Hlc) -> None:
        """Add a retry."""
        self.retried_at = max(at, self.retried_at)


@dataclass(slots=True, eq=False, repr=False)
class Contest:
    """The drafts of one task in the orders that decide among them."""

    accepted: Ordered[tuple[Hlc, OpId, Ballot]] = ()
    """Accepted and not vetoed, by (accepted_at, id)."""
    picked: Ordered[tuple[Hlc, OpId, Ballot]] = ()
    """Picked and not vetoed, by latest pick."""
    by_author: dict[PeerId, Ordered[tuple[int, OpId, Ballot]]] = field(default_factory=dict)
    """Each author's drafts by seq."""
    within: dict[PeerId, int] = field(default_factory=dict)
    """How many of them are within the limit of drafts per author."""
    standing: int = 0
    """Drafts that aren't vetoed."""


@dataclass(slots=True, eq=False, repr=False)
class Node(Task):
    """A task with its place in the tree and what its state is reckoned from."""

    path: bytes = b""
    """One byte per level, the step's index: sorts tasks in reading order."""
    born: Hlc = 0
    """The hlc of the proposal (or goal) that made it."""
    up: Node | None = None
    ballot: Ballot | None = None
    """The draft that made it; None for the root."""
    split: Ballot | None = None
    """The same draft as `winner`."""
    befores: tuple[Node, ...] = ()
    """The tasks in its `after`."""
    made_at: Hlc = 0
    """While live: when the split that made it was accepted."""
    gate: Hlc | None = None
    """When all that it and its ancestors wait for was done; None while something isn't."""
    done_at: Hlc | None = None
    contest: Contest | None = None
    work: Work | None = None
    entering: bool = False
    leaving: bool = False
    """It's among those that wait to be looked at again (see flow.py)."""

    def working(self) -> Work:
        """Its work, made when first needed."""
        if self.work is None:
            self.work = Work()
        return self.work

    def contested(self) -> Contest:
        """Its contest, made when first needed."""
        if self.contest is None:
            self.contest = Contest()
            self.drafts = {}
        return self.contest
