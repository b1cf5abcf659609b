"""Keeping peers: who is to be connected, and redialling those who are lost."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable

import trio

from swarmtui.peer.beat import next_beat
from swarmtui.plan.ops import PeerId

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.5
LAST_RETRY_S = 30.0
SETTLED_S = 10.0
"""A connection that lasted this long was a good one: the next retry is quick again."""
ADDRESSES_PER_PEER = 8
MAX_FOUND = 64
"""Found peers that are kept; whoever announces more than that is playing."""


class Dialler:
    """Dials peers and redials them when they're lost, each with its own back-off and jitter.

    Peers that were named (`connect`, `join`) are kept for good; found ones (folder, mDNS) for as long as they're
    found.
    """

    def __init__(
        self,
        me: PeerId,
        dial: Callable[[PeerId, str], Awaitable[None]],
        connected: Callable[[PeerId], bool],
        rng: random.Random,
    ) -> None:
        self._me, self._dial, self._connected, self._rng = me, dial, connected, rng
        self._addresses: dict[PeerId, list[str]] = {}
        self._named: dict[PeerId, set[str]] = {}
        """The addresses that people gave."""
        self._changes: dict[PeerId, trio.Event] = {}
        self._kept: set[PeerId] = set()
        """Peers that a task looks after."""
        self._nursery: trio.Nursery | None = None
        self.problems: dict[PeerId, str] = {}
        """Why a named peer couldn't be reached the last time."""

    def keep(self, peer: PeerId, address: str, *, named: bool) -> None:
        """Dial this peer there from now on."""
        known = self._addresses.get(peer)
        if peer == self._me or (known is None and not named and len(self._addresses) - len(self._named) >= MAX_FOUND):
            return
        if named:
            self._named.setdefault(peer, set()).add(address)
        if known is None:
            self._addresses[peer] = [address]
            self._look_after(peer)
        elif address not in known:
            known.insert(0, address)
            self._forget_one_too_many(peer, known)
        self.changed(peer)

    def _forget_one_too_many(self, peer: PeerId, known: list[str]) -> None:
        """Anybody can announce addresses: they mustn't push out the one that a person gave."""
        found = [address for address in known if address not in self._named.get(peer, ())]
        if len(found) > ADDRESSES_PER_PEER:
            known.remove(found[-1])

    def _look_after(self, peer: PeerId) -> None:
        if self._nursery is not None and peer not in self._kept:
            self._kept.add(peer)
            self._nursery.start_soon(self._keep, peer)

    def lost(self, peer: PeerId) -> None:
        """A found peer isn't found any more: don't redial it."""
        if peer not in self._named:
            self.forget(peer)

    def forget(self, peer: PeerId) -> None:
        """Don't redial it, however it was known."""
        self._named.pop(peer, None)
        self._addresses.pop(peer, None)
        self.changed(peer)

    def changed(self, peer: PeerId) -> None:
        """Look again: the peer was lost, or has a new address."""
        event = self._changes.pop(peer, None)
        if event is not None:
            event.set()

    async def run(self) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for peer in self._addresses:
                self._look_after(peer)
            await trio.sleep_forever()

    async def _keep(self, peer: PeerId) -> None:
        delay, failures, tried = FIRST_RETRY_S, 0, False
        if peer > self._me and peer not in self._named:
            # Both have found each other: let one dial first, so that there's one connection.
            await trio.sleep(self._rng.uniform(1.0, 2.0))
        while peer in self._addresses:
            lasted = await self._until_lost(peer)
            if lasted > SETTLED_S:
                delay, tried = FIRST_RETRY_S, False
                await trio.sleep(self._rng.uniform(0.0, FIRST_RETRY_S))
            if tried:
                # Also when the dial worked: those who refuse us hang up just after.
                await self._wait(peer, delay * self._rng.uniform(0.7, 1.3))
                delay = min(delay * 2, LAST_RETRY_S)
            where = self._addresses.get(peer)
            if not where or self._connected(peer):
                continue
            tried = True
            try:
                await self._dial(peer, where[0])
                failures = 0
                self.problems.pop(peer, None)
            except Exception as error:
                log.debug("can't reach %s: %r", where[0], error)
                failures += 1
                if failures > 1 and peer in self._named:
                    self.problems[peer] = (
                        f"{where[0]} can't be reached: is it running, with this address and the same secret?"
                    )
                where.append(where.pop(0))
        self.problems.pop(peer, None)
        self._kept.discard(peer)

    async def _until_lost(self, peer: PeerId) -> float:
        """Wait while it's connected; how long that was."""
        since = trio.current_time()
        while self._connected(peer) and peer in self._addresses:
            self.problems.pop(peer, None)
            await self._wait(peer, next_beat(LAST_RETRY_S) - trio.current_time())
        return trio.current_time() - since

    async def _wait(self, peer: PeerId, seconds: float) -> None:
        event = self._changes.setdefault(peer, trio.Event())
        with trio.move_on_after(seconds):
            await event.wait()
