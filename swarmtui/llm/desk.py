"""The requests to an engine: which wait, which are being worked on, which go next. Knows no process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from swarmtui.llm import wire
from swarmtui.llm.fair import FairQueue
from swarmtui.llm.model import Cost, ModelError, Urgency


class Ticket:
    """A request on its way."""

    def __init__(
        self, agent: str, kind: str, message: wire.Generate | wire.Weigh, on_text: Callable[[str], None] | None
    ) -> None:
        self.agent = agent
        self.kind = kind
        self.number = message.id
        self.message = message
        self.suspect = False
        """An engine died or hung while it worked on this one."""
        self.wanted = True
        """Whoever asked is still there."""
        self.ended = trio.Event()
        self.answer: wire.Done | wire.Weighed | None = None
        self.error: ModelError | None = None
        self._on_text = on_text

    def hear(self, text: str) -> None:
        """Hand a piece on. A listener that raises isn't asked again: its fault must not end the model for all."""
        if self._on_text is not None and self.wanted:
            try:
                self._on_text(text)
            except Exception:
                self._on_text = None

    def end(self, answer: wire.Done | wire.Weighed | None) -> None:
        """End it with an answer; without one if it was given up."""
        self.answer = answer
        self.ended.set()

    def fail(self, error: ModelError) -> None:
        """End it without an answer."""
        self.error = error.copy()
        self.ended.set()

    def cost(self, message: wire.Done | wire.Weighed | wire.Stopped) -> Cost:
        """What it took, by the engine's last word on it."""
        if isinstance(message, wire.Stopped):
            return Cost(
                agent=self.agent,
                kind=self.kind,
                tokens_in=message.evaluated,
                tokens_out=message.tokens_out,
                cancelled=True,
            )
        return Cost(
            agent=self.agent,
            kind=self.kind,
            tokens_in=message.tokens_in,
            tokens_cached=message.tokens_cached,
            tokens_out=message.tokens_out if isinstance(message, wire.Done) else 0,
        )


class Desk:
    """Hands out tickets to an engine with `slots` places, and `express` further ones for the urgent.

    When an engine is lost, those that it was at become suspects: they are handed out once more, each alone. So the one
    that an engine dies of is found, and is the only one that fails.
    """

    def __init__(self) -> None:
        self.slots = 0
        self.express = 0
        self._queue: FairQueue[Ticket] = FairQueue()
        self._sent: dict[int, Ticket] = {}
        self._suspects: deque[Ticket] = deque()

    @property
    def waiting(self) -> int:
        """Requests without a place."""
        return len(self._queue) + len(self._suspects)

    @property
    def working(self) -> int:
        """Requests in the engine."""
        return len(self._sent)

    def push(self, ticket: Ticket) -> None:
        """A new request."""
        self._queue.push(ticket.agent, ticket.message.priority, ticket)

    def withdraw(self, ticket: Ticket) -> bool:
        """Nobody wants it any more. True if the engine is at it and has to be told."""
        ticket.wanted = False
        if ticket in self._suspects:
            self._suspects.remove(ticket)
            return False
        return not self._queue.remove(ticket) and ticket.number in self._sent

    def next(self) -> Ticket | None:
        """Who goes next, if there's a place."""
        ticket = self._choose()
        if ticket is not None:
            self._sent[ticket.number] = ticket
        return ticket

    def sent(self, number: int) -> Ticket | None:
        """The request of that number that the engine is at."""
        return self._sent.get(number)

    def done(self, number: int) -> Ticket | None:
        """The engine has ended with this one."""
        return self._sent.pop(number, None)

    def lose(self, error: ModelError) -> str:
        """The engine is gone with what it was at; returns what that costs, as the end of a sentence."""
        sent = list(self._sent.values())
        self._sent.clear()
        again = [each for each in sent if each.wanted and not each.suspect]
        lost = [each for each in sent if each.wanted and each.suspect]
        for ticket in again:
            ticket.suspect = True
        for ticket in lost:
            ticket.fail(error)
        self._suspects.extend(again)
        counts = ((len(lost), "lost"), (len(again), "asked again"))
        return "".join(f", {count} request{'' if count == 1 else 's'} {what}" for count, what in counts if count)

    def fail_all(self, error: ModelError) -> None:
        """Nothing will be answered any more."""
        waiting = [*self._sent.values(), *self._suspects]
        self._sent.clear()
        self._suspects.clear()
        while self._queue:
            waiting.append(self._queue.pop())
        for ticket in waiting:
            ticket.fail(error)

    def _choose(self) -> Ticket | None:
        if any(each.suspect for each in self._sent.values()):
            return None
        if self._suspects:
            return None if self._sent else self._suspects.popleft()
        places = self.slots + (self.express if self._queue.priority >= Urgency.VOTE else 0)
        return self._queue.pop() if self._queue and len(self._sent) < places else None
