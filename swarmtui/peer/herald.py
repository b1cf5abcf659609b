"""Says by presence who we are, what we do and what we hold: at every change, and again and again."""

from __future__ import annotations

import random
from collections.abc import Callable

import trio

from swarmtui.plan.envelope import Identity

from .beat import next_beat
from .frames import put_together
from .presence import Card, Presence, Presences, interval_s, seal_presence
from .spread import Spread
from .store import Store

GAP_PART = 10
"""Changes are sent together: at most so many presences in an interval, one a second in a small swarm."""
QUIET_PART = 5
"""When what we hold has changed since the last presence and then rested for this part of an interval, it's told: so the
end of a burst of ops is known to all within seconds."""


class Herald:
    """Sends one peer's presence."""

    def __init__(
        self,
        identity: Identity,
        card: Card,
        store: Store,
        spread: Spread,
        presences: Presences,
        now_ms: Callable[[], int],
        rng: random.Random,
        beat_s: float,
    ) -> None:
        """`beat_s`: the phase of its regular presences (see beat.py)."""
        self._identity = identity
        self._card = card
        self._store = store
        self._spread = spread
        self._presences = presences
        self._now_ms = now_ms
        self._rng = rng
        self._beat_s = beat_s
        self._run = 0
        self._count = 0
        self._doing, self._subject, self._since, self._speed = "", "", 0, 0
        self._hurry = trio.Event()
        self._told = b""
        self.said = 0
        """Own ops published in this run."""

    def show(self, doing: str, subject: str, tokens_per_second: float) -> None:
        """Change what is said; a mere change of speed isn't worth a presence of its own."""
        changed = (doing, subject) != (self._doing, self._subject)
        self._doing, self._subject = doing, subject
        self._speed = max(0, round(10 * tokens_per_second))
        if changed:
            self._since = self._now_ms()
            self.hurry()

    def introduce(self, card: Card) -> None:
        """Say from now on that it is this."""
        if card != self._card:
            self._card = card
            self.hurry()

    def hurry(self) -> None:
        """Send a presence soon: something changed, or somebody came."""
        self._hurry.set()

    async def run(self) -> None:
        """Send presences until cancelled."""
        await trio.sleep(self._rng.uniform(0.0, 0.2))
        while True:
            self._hurry = trio.Event()
            await self.send()
            every = self._every()
            due = next_beat(every, self._beat_s)
            await trio.sleep(every / GAP_PART * self._rng.uniform(0.8, 1.2))
            await self._wait(due)

    async def _wait(self, until: float) -> None:
        """Wait for the next time to speak, at the latest `until`."""
        quiet = self._every() / QUIET_PART
        while trio.current_time() < until:
            held = self._store.replica.fingerprint
            with trio.move_on_at(min(next_beat(quiet, self._beat_s), until)):
                await self._hurry.wait()
                return
            if held == self._store.replica.fingerprint != self._told:
                return

    async def send(self, *, leaving: bool = False) -> None:
        """Publish a presence now."""
        self._told = self._store.replica.fingerprint
        await self._spread.publish(put_together(presence=seal_presence(self._identity, self._presence(leaving))))
        self._store.counters.presences_out += 1

    def _every(self) -> float:
        return interval_s(1 + len(self._presences.heard))

    def _presence(self, leaving: bool) -> Presence:
        now = max(0, self._now_ms())
        if not self._run:
            # A thousand starts in one millisecond still differ.
            self._run = now << 10 | self._rng.getrandbits(10)
        self._count += 1
        card = self._card
        return Presence(
            peer=self._identity.peer_id,
            at=now,
            run=self._run,
            count=self._count,
            every_ms=int(1000 * self._every()),
            role=cut(card.role, 40),
            name=cut(card.name, 80),
            skills=tuple(cut(skill, 40) for skill in card.skills[:32]),
            model=cut(card.model, 200),
            machine=cut(card.machine, 200),
            doing=cut(self._doing, 80),
            subject=cut(self._subject, 200),
            since=max(0, self._since),
            tokens_per_second_x10=self._speed,
            ops=self._store.replica.count,
            said=self.said,
            fingerprint=self._store.replica.fingerprint,
            leaving=leaving,
        )


def cut(text: str, most: int) -> str:
    """Text that fits a presence; what can't be encoded (a model's half a character) is replaced."""
    return text[:most].encode(errors="replace").decode()
