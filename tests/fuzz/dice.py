"""The one source of choice of the fuzzer: a seed, or a string of bytes that Hypothesis or atheris provides."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Choices from a string of bytes. When they're used up, every choice is the first one: what is made gets plain."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def over(self) -> bool:
        """Whether there's nothing left to choose from."""
        return self._at >= len(self._data)

    def below(self, most: int) -> int:
        """A number from 0 on, smaller than `most`."""
        size = 1 if most <= 256 else (most.bit_length() + 7) // 8
        piece = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(piece, "big") % most

    def octets(self, count: int) -> bytes:
        """So many bytes, fewer near the end."""
        piece = self._data[self._at : self._at + count]
        self._at += count
        return piece

    def choose(self, things: Sequence[T]) -> T:
        return things[self.below(len(things))]

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """The things in another order."""
        left = list(things)
        for at in range(len(left) - 1, 0, -1):
            other = self.below(at + 1)
            left[at], left[other] = left[other], left[at]
        return left


class SeededDice(Dice):
    """Choices without an end, from a seed."""

    def __init__(self, seed: object) -> None:
        super().__init__(b"")
        self._rng = random.Random(str(seed))

    @property
    def over(self) -> bool:
        return False

    def below(self, most: int) -> int:
        return int(self._rng.random() * most) if most < 1 << 50 else self._rng.randrange(most)

    def octets(self, count: int) -> bytes:
        return self._rng.randbytes(count)
