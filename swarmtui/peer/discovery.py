"""Finding peers and keeping them: redialling, a shared folder for one machine, mDNS for one network."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable

import trio

from swarmtui.plan.ops import PeerId

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.5
LAST_RETRY_S = 30.0
SETTLED_S = 10.0
"""A connection that lasted this long was a good one: the next retry is quick again."""
ADDRESSES_PER_PEER = 8


class Dialler:
    """Dials peers and redials them when they're lost, each with its own back-off and jitter.

    Peers that were named (`connect`, `join`) are kept for good; found ones (folder, mDNS) for as long as they're found.
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
        self._named: set[PeerId] = set()
        self._changes: dict[PeerId, trio.Event] = {}
        self._nursery: trio.Nursery | None = None
        self.problems: dict[PeerId, str] = {}
        """Why a named peer couldn't be reached the last time."""

    def keep(self, peer: PeerId, address: str, named: bool) -> None:
        """Dial this peer there from now on."""
        if peer == self._me:
            return
        if named:
            self._named.add(peer)
        known = self._addresses.get(peer)
        if known is None:
            self._addresses[peer] = [address]
            if self._nursery is not None:
                self._nursery.start_soon(self._keep, peer)
        elif address not in known:
            known.insert(0, address)
            del known[ADDRESSES_PER_PEER:]
            self.changed(peer)

    def drop(self, peer: PeerId) -> None:
        """A found peer isn't found any more: don't redial it."""
        if peer not in self._named:
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
                nursery.start_soon(self._keep, peer)
            await trio.sleep_forever()

    async def _keep(self, peer: PeerId) -> None:
        delay = FIRST_RETRY_S
        since = trio.current_time()
        if peer > self._me and peer not in self._named:
            # Both have found each other: let one dial first, so that there's one connection.
            await trio.sleep(self._rng.uniform(1.0, 2.0))
        while peer in self._addresses:
            if self._connected(peer):
                since = trio.current_time()
                await self._wait(peer, LAST_RETRY_S)
                continue
            if trio.current_time() - since > SETTLED_S:
                delay = FIRST_RETRY_S
            address = self._addresses[peer][0]
            try:
                await self._dial(peer, address)
                self.problems.pop(peer, None)
                since = trio.current_time()
                # Those who refuse us hang up just after: the back-off goes on unless the connection lasts.
                await self._wait(peer, SETTLED_S)
                if self._connected(peer):
                    continue
            except Exception as error:
                log.debug("can't reach %s: %r", address, error)
                self.problems[peer] = f"{address} can't be reached: is it running, is the address right?"
                rest = self._addresses.get(peer)
                if rest:
                    rest.append(rest.pop(0))
            await trio.sleep(delay * self._rng.uniform(0.7, 1.3))
            delay = min(delay * 2, LAST_RETRY_S)
        self.problems.pop(peer, None)

    async def _wait(self, peer: PeerId, seconds: float) -> None:
        event = self._changes.setdefault(peer, trio.Event())
        with trio.move_on_after(seconds):
            await event.wait()
