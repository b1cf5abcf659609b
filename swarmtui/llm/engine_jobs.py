"""The engine's two kinds of work, writing and weighing: each says what to evaluate and takes the logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from swarmtui.llm import wire
from swarmtui.llm.decoder import Decoder
from swarmtui.llm.engine_cache import Cache, Strand
from swarmtui.llm.sampler import Logits

Row = Callable[[int], Logits]
"""Gives the logits that follow the i-th token of those that a job gave."""


class Lane:
    """Tokens on their way into a sequence."""

    def __init__(self, strand: Strand, tokens: list[int], wants: int) -> None:
        self.strand = strand
        self.queue = tokens
        self.wants = wants
        """Logits are wanted for the last so many of them."""
        self.sent: list[int] = []

    def send(self, room: int) -> list[tuple[int, int, int, bool]]:
        """The next tokens, as entries of a batch."""
        self.sent, self.queue = self.queue[:room], self.queue[room:]
        start = len(self.strand.tokens)
        after = len(self.queue)
        count = len(self.sent)
        return [
            (token, start + i, self.strand.number, count - i + after <= self.wants) for i, token in enumerate(self.sent)
        ]

    def arrived(self) -> None:
        """What was sent lies in the sequence now."""
        self.strand.tokens += self.sent


class Job(Protocol):
    """A request in its slot."""

    id: int
    priority: int
    prompt: list[int]
    """What it reads before it writes or weighs."""
    slot: Strand
    tokens_in: int
    tokens_cached: int
    evaluating: bool
    """Still reading its prompt."""
    writes: bool
    """Goes on token by token, once its prompt is read."""

    def lanes(self) -> list[Lane]:
        """What it wants evaluated next, at least one."""
        ...

    def took(self, lane: Lane, row: Row) -> None:
        """A lane's sent tokens have arrived."""
        ...

    def report(self) -> list[wire.FromEngine]:
        """What there is to tell by now."""
        ...

    @property
    def done(self) -> bool: ...
    def stopped(self) -> wire.Stopped:
        """What it took so far, if it's stopped now."""
        ...

    def release(self) -> None:
        """Give back all sequences."""
        ...


class Writing:
    """An answer being written."""

    writes = True

    def __init__(
        self,
        request: wire.Generate,
        cache: Cache,
        slot: Strand,
        prefix: list[int],
        rest: list[int],
        decoder: Decoder,
    ) -> None:
        self.id = request.id
        self.priority = request.priority
        self.prompt = prefix + rest
        self.slot = slot
        self.tokens_in = len(self.prompt)
        self.tokens_cached = len(slot.tokens)
        self.evaluating = True
        self._cache = cache
        self._decoder = decoder
        self._standing = prefix
        self._lane = Lane(slot, self.prompt[self.tokens_cached :] + decoder.take_tokens(), 1)

    @property
    def done(self) -> bool:
        return self._decoder.done

    def lanes(self) -> list[Lane]:
        return [self._lane]

    def took(self, lane: Lane, row: Row) -> None:
        lane.arrived()
        if self.evaluating and len(self.slot.tokens) >= len(self._standing):
            self._cache.pin(self.slot, self._standing)
        if lane.queue:
            return
        self.evaluating = False
        self._decoder.sample(row(len(lane.sent) - 1))
        lane.queue = self._decoder.take_tokens()

    def report(self) -> list[wire.FromEngine]:
        found: list[wire.FromEngine] = []
        if text := self._decoder.take_stream():
            found.append(wire.Piece(self.id, text))
        if self.done:
            found.append(
                wire.Done(
                    id=self.id,
                    text=self._decoder.text,
                    value=self._decoder.value,
                    tokens_in=self.tokens_in,
                    tokens_cached=self.tokens_cached,
                    tokens_out=self._decoder.count,
                    cut=self._decoder.cut,
                )
            )
        return found

    def stopped(self) -> wire.Stopped:
        read = min(len(self.slot.tokens), self.tokens_in) - self.tokens_cached
        return wire.Stopped(self.id, max(0, read), self._decoder.count)

    def release(self) -> None:
        self._cache.free(self.slot, len(self.prompt))


class Weighing:
    """Texts being weighed: the common prefix is read once, each continuation in a lane of its own."""

    writes = False

    def __init__(
        self,
        request: wire.Weigh,
        cache: Cache,
        slot: Strand,
        prefix: list[int],
        continuations: list[list[int]],
    ) -> None:
        self.id = request.id
        self.priority = request.priority
        self._evaluated = 0
        self.prompt = prefix[:-1]
        self.slot = slot
        self.tokens_in = len(prefix) + sum(map(len, continuations))
        self.tokens_cached = len(slot.tokens)
        self.evaluating = True
        self._cache = cache
        self._last = prefix[-1]
        self._texts = continuations
        self._next = 0
        self._sums = [0.0] * len(continuations)
        self._helpers: list[Strand] = []
        self._lanes: list[tuple[Lane, int]] = []
        head = self.prompt[self.tokens_cached :]
        self._reading = Lane(slot, head, 0) if head else None
        if not head:
            self._fan_out()

    @property
    def done(self) -> bool:
        return self._reading is None and not self._lanes

    def lanes(self) -> list[Lane]:
        return [self._reading] if self._reading else [lane for lane, _ in self._lanes]

    def took(self, lane: Lane, row: Row) -> None:
        lane.arrived()
        self._evaluated += len(lane.sent)
        if lane is self._reading:
            if not lane.queue:
                self._reading = None
                self._fan_out()
            return
        which = next(index for other, index in self._lanes if other is lane)
        tokens = [self._last, *self._texts[which]]
        at = len(lane.strand.tokens) - len(self.prompt) - len(lane.sent)
        for i in range(len(lane.sent)):
            if 0 <= at + i < len(tokens) - 1:
                self._sums[which] += log_p(row(i), tokens[at + i + 1])
        if not lane.queue:
            self._lanes = [each for each in self._lanes if each[0] is not lane]
            self._start(lane.strand)

    def report(self) -> list[wire.FromEngine]:
        if not self.done:
            return []
        means = [total / max(1, len(text)) for total, text in zip(self._sums, self._texts, strict=True)]
        return [wire.Weighed(self.id, means, self.tokens_in, self.tokens_cached)]

    def stopped(self) -> wire.Stopped:
        return wire.Stopped(self.id, self._evaluated)

    def release(self) -> None:
        self._cache.free(self.slot, len(self.prompt))
        for each in self._helpers:
            self._cache.free(each)

    def _fan_out(self) -> None:
        """The prefix lies in the slot: copy it to idle slots, one for each further text, and start."""
        self.evaluating = False
        waiting = len(self._texts)
        for helper in self._cache.idle[: max(0, waiting - 1)]:
            helper.busy = True
            self._helpers.append(helper)
            self._cache.copy(self.slot, helper, len(self.prompt))
        for each in (self.slot, *self._helpers):
            self._start(each)

    def _start(self, sequence: Strand) -> None:
        """Begin with the next text, if there's one."""
        while self._next < len(self._texts) and not self._texts[self._next]:
            self._next += 1
        if self._next >= len(self._texts):
            return
        self._cache.trim(sequence, len(self.prompt))
        tokens = [self._last, *self._texts[self._next]][:-1]
        if len(sequence.tokens) < len(self.prompt):
            # The model can't rewind: read the prefix again, in this lane.
            tokens = self.prompt[len(sequence.tokens) :] + tokens
        self._lanes.append((Lane(sequence, tokens, len(self._texts[self._next])), self._next))
        self._next += 1


def log_p(logits: Logits, token: int) -> float:
    """The log probability that the model gives a token."""
    top = float(logits.max())
    return float(logits[token]) - top - float(np.log(np.exp(logits - top).sum(dtype=np.float64)))
