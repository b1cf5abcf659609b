"""Which tokens lie in which sequence of the KV cache, so that nothing that's there is evaluated again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

WORTH_PINNING = 16
"""Tokens of a prefix that are worth a sequence of their own."""


class Memory(Protocol):
    """The model's KV cache; False: the model can't rewind, and the sequence is empty now."""

    def trim(self, sequence: int, keep: int) -> bool: ...
    def copy(self, source: int, target: int, keep: int) -> bool: ...


class Strand:
    """One sequence and what lies in it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.tokens: list[int] = []
        self.busy = False
        self.used = 0


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts have in common from the start."""
    most = min(len(one), len(other))
    if list(one[:most]) == list(other[:most]):
        return most
    return next(i for i in range(most) if one[i] != other[i])


class Cache:
    """`slots` sequences for work and `pins` for prefixes of up to `longest` tokens, which outlive the requests."""

    def __init__(self, memory: Memory, slots: int, pins: int, longest: int) -> None:
        self._memory = memory
        self.slots = [Strand(i) for i in range(slots)]
        self.pins = [Strand(slots + i) for i in range(pins)]
        self._longest = longest
        self._now = 0

    @property
    def idle(self) -> list[Strand]:
        """Slots that nobody works in."""
        return [each for each in self.slots if not each.busy]

    def known(self, tokens: Sequence[int]) -> int:
        """How many of the first tokens lie in some sequence."""
        return max(shared(each.tokens, tokens) for each in (*self.slots, *self.pins))

    def take(self, tokens: Sequence[int]) -> Strand | None:
        """An idle slot that holds as much of `tokens` as is known, save the last: that's evaluated. None: all busy."""
        idle = self.idle
        if not idle:
            return None
        self._now += 1
        wanted = tokens[:-1]
        oldest = min(idle, key=lambda each: (each.used, each.number))
        # One that is kept, or that somebody is writing in, shares its cells at no cost; an idle one is taken itself
        # only if nobody else knows as much: what the idle hold beyond may be wanted again.
        kept = [*self.pins, *(each for each in self.slots if each.busy), oldest]
        source = max([*kept, *idle], key=lambda each: shared(each.tokens, wanted))
        keep = shared(source.tokens, wanted)
        slot = source if source in idle else oldest
        if slot is source or not keep:
            self.trim(slot, keep)
        else:
            source.used = self._now
            self.copy(source, slot, keep)
        slot.busy = True
        slot.used = self._now
        return slot

    def free(self, slot: Strand, keep: int = 0) -> None:
        """Nobody works in it any more. The first `keep` tokens stay until there's need of the place.

        What no request will begin with, such as an answer, goes: all sequences are searched by every step.
        """
        self.trim(slot, keep)
        slot.busy = False

    def pin(self, slot: Strand, prefix: Sequence[int]) -> None:
        """Keep the prefix, which lies at the start of the slot, beyond the slot's request."""
        if not self.pins or not WORTH_PINNING <= len(prefix) <= self._longest or self.pinned(prefix):
            return
        self._now += 1
        pin = min(self.pins, key=lambda each: (each.used, each.number))
        self.copy(slot, pin, len(prefix))
        pin.used = self._now

    def pinned(self, prefix: Sequence[int]) -> bool:
        """Whether the prefix is kept."""
        return any(shared(each.tokens, prefix) == len(prefix) for each in self.pins)

    def copy(self, source: Strand, target: Strand, keep: int) -> None:
        """Make one hold the first tokens of another."""
        target.tokens = source.tokens[:keep] if self._memory.copy(source.number, target.number, keep) else []

    def trim(self, sequence: Strand, keep: int) -> None:
        """Forget all from the token `keep` on (all of it if the model can't rewind)."""
        if len(sequence.tokens) <= keep:
            return
        sequence.tokens = sequence.tokens[:keep] if self._memory.trim(sequence.number, keep) else []

    def drop(self, sequence: Strand) -> None:
        """Forget all, as after a failed evaluation."""
        self._memory.trim(sequence.number, 0)
        sequence.tokens = []
