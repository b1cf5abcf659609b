"""Which ops are kept, by author and sequence number, and what two peers compare to find out what each lacks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from .ops import Goal, Op, Proposal

_MASK = (1 << 512) - 1
_OP_WEIGHT = 900
_TASK_WEIGHT = 800
_PLAN_WEIGHT = 4_000


def weight(op: Op) -> int:
    """Bytes of memory that keeping an op costs, roughly: its payload twice (sent and decoded) and our bookkeeping."""
    total = _OP_WEIGHT + 2 * len(op.payload)
    if type(op.body) is Proposal:
        total += _TASK_WEIGHT * len(op.body.steps)
    elif type(op.body) is Goal:
        total += _PLAN_WEIGHT
    return total


def print_of(op: Op) -> int:
    """An op's share of a fingerprint. Shares are added up, so that order doesn't matter. The sum is wide, and no XOR:
    nobody can easily make up ops that cancel each other out."""
    return int.from_bytes(hashlib.blake2b(op.id).digest(), "big")


def fingerprint(total: int) -> bytes:
    """The 16 bytes of a sum of shares."""
    return hashlib.blake2b((total & _MASK).to_bytes(64, "big"), digest_size=16).digest()


class Shelf:
    """The ops of one author in one plan, by slot (sequence number).

    An author that works as it should uses a slot once. Two ops in one prove a fault, and count like any others: nobody
    can take back what others have built on by saying something else under its number.
    """

    __slots__ = ("_first", "_more", "contiguous", "top")

    def __init__(self) -> None:
        self._first: dict[int, Op] = {}
        self._more: dict[int, list[Op]] = {}
        """What came later into slots that were taken."""
        self.contiguous = 0
        """How many sequence numbers are held from 0 on without a gap."""
        self.top = -1
        """The highest sequence number held."""

    @property
    def faulty(self) -> bool:
        """Two ops with the same sequence number are held."""
        return bool(self._more)

    def place(self, op: Op) -> None:
        """Put a new op into its slot."""
        seq = op.seq
        if seq in self._first:
            self._more.setdefault(seq, []).append(op)
            return
        self._first[seq] = op
        if seq > self.top:
            self.top = seq
        while self.contiguous in self._first:
            self.contiguous += 1

    def __iter__(self) -> Iterator[Op]:
        return self.since(0)

    def since(self, seq: int) -> Iterator[Op]:
        """Ops with at least this sequence number, lowest first."""
        if self.contiguous > self.top:
            numbers: list[int] | range = range(seq, self.top + 1)
        else:
            numbers = sorted(number for number in self._first if number >= seq)
        for number in numbers:
            yield self._first[number]
            yield from self._more.get(number, ())
