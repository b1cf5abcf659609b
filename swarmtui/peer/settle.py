"""Makes sure that an identity which comes back uses no sequence number twice.

Two ops with the same author and seq make the author faulty for good. A peer whose journal is gone (or a little old,
after a power cut) doesn't know what it said before, but the others do. So before it first speaks in a plan that it
didn't start in this run, it waits until it holds all that each agent connected to it holds; then it goes on after the
highest own seq that it has seen. The wait is bounded: a neighbour that can't be asked mustn't silence it for good.

A process that was stopped and goes on waits in the same way, so that it doesn't act on what was so before.

If the journal was found damaged, the wait is longer: the first who are met are peers of the same program, who lost the
same, and those who know more may need longer to be met.

Spared the wait: an identity that was made just now (it can't have said anything), and a peer that has met nobody in
its first seconds (all that can be known is in its journal). What only a peer knows that is cut off meanwhile can't be
learned; the two ops then meet later, both count, and everybody sees the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio

from swarmtui.plan.ops import OpId, PeerId

from .network import Network
from .presence import Heard
from .repair import Repair
from .store import Store

SETTLE_S = 30.0
"""The longest wait."""
MEET_S = 2.0
"""After the first contact, so that the others' presences have come."""
ALONE_S = 3.0
"""To meet somebody at all: a journal that lost its end, after a power cut, looks like a whole one."""
DAMAGED_S = 10.0
"""Instead of both of these, if the journal was found damaged."""
LOOK_S = 1.0


class Settling:
    """Knows in which plans a peer may speak."""

    def __init__(
        self,
        fresh: bool,
        damaged: Callable[[], bool],
        store: Store,
        network: Network,
        heard: Mapping[PeerId, Heard],
        repair: Repair,
    ) -> None:
        """
        Args:
            fresh: the identity was made just now.
            damaged: whether the journal was found damaged.
        """
        self._fresh = fresh
        self._damaged = damaged
        self._store = store
        self._network = network
        self._heard = heard
        self._repair = repair
        self._plans: set[OpId] = set()
        self._agreed: dict[OpId, set[PeerId]] = {}
        self._something = trio.Event()
        self._met_at: float | None = None
        self._meeting = trio.Event()
        self._alone = False
        """It has waited for somebody in vain."""

    def met(self) -> None:
        """Somebody was heard or joined."""
        if self._met_at is None:
            self._met_at = trio.current_time()
            self._meeting.set()

    def woke(self) -> None:
        """This process was stopped: what it decides on is old, and what was said meanwhile is still in the pipes."""
        self._fresh = False
        self._plans.clear()
        self._agreed.clear()
        if self._met_at is not None:
            self._met_at = trio.current_time()

    def agreed(self, peer: PeerId) -> None:
        """We hold all that this peer holds now."""
        if self._fresh:
            return
        for plan in self._store.replica.plans:
            if plan not in self._plans:
                self._agreed.setdefault(plan, set()).add(peer)
        self._something.set()

    def settled(self, plan: OpId) -> None:
        """We may speak in this plan."""
        self._plans.add(plan)
        self._agreed.pop(plan, None)

    async def wait(self, plan: OpId) -> None:
        """Wait until we may speak in this plan, SETTLE_S at most."""
        if self._fresh or plan in self._plans:
            return
        if self._met_at is None and not self._alone:
            with trio.move_on_after(self._at_least(ALONE_S)):
                await self._meeting.wait()
            self._alone = True
        if self._met_at is None:
            return
        with trio.move_on_after(SETTLE_S):
            await trio.sleep_until(self._met_at + self._at_least(MEET_S))
            while missing := self._missing(plan):
                for peer in missing:
                    self._repair.want(peer)
                self._something = trio.Event()
                with trio.move_on_after(LOOK_S):
                    await self._something.wait()
        self.settled(plan)

    def _at_least(self, usual_s: float) -> float:
        """How long to look for those who know more than the journal, which is longer if it was found damaged."""
        return DAMAGED_S if self._damaged() else usual_s

    def _missing(self, plan: OpId) -> list[PeerId]:
        """Agents connected to us of whom we don't know that we hold what they hold, or held when we last heard them."""
        agreed = self._agreed.get(plan, set())
        return [
            peer
            for peer in self._network.neighbours
            if (heard := self._heard.get(peer)) is not None
            and peer not in agreed
            and not self._store.was(heard.presence.fingerprint)
        ]
