"""Who misbehaved how often, and who is banned until when."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from swarmtui.plan.ops import PeerId

STRIKES = 5
"""Faults within WINDOW_S that ban a peer."""
WINDOW_S = 60.0
BAN_S = 180.0
REMEMBERED = 256
"""Peers whose strikes are remembered, and bans; keys are free, so the oldest are forgotten."""
SHOWN = 5
"""Bans that a person is told of one by one."""


class Strikes:
    """Counts faults on trio's clock. `wall` gives unix seconds, for what a person reads."""

    def __init__(self, wall: Callable[[], float], describe_time: Callable[[float], str], ban_s: float = BAN_S) -> None:
        self._wall, self._describe_time, self._ban_s = wall, describe_time, ban_s
        self._faults: dict[PeerId, deque[float]] = {}
        self._banned: dict[PeerId, tuple[float, str]] = {}
        self.total = 0

    def add(self, peer: PeerId, reason: str) -> bool:
        """Count a fault; True if it bans the peer from now on."""
        self.total += 1
        if self.banned(peer):
            return False
        now = trio.current_time()
        faults = self._faults.pop(peer, None) or deque(maxlen=STRIKES)
        self._faults[peer] = faults  # last in the order of insertion
        faults.append(now)
        while len(self._faults) > REMEMBERED:
            del self._faults[next(iter(self._faults))]
        if len(faults) < STRIKES or faults[0] < now - WINDOW_S:
            return False
        del self._faults[peer]
        until = self._describe_time(self._wall() + self._ban_s)
        self._banned[peer] = (
            now + self._ban_s,
            f"{peer[-8:]} is shut out until {until}: {reason}. Nothing to do; if it's yours, update or restart it.",
        )
        while len(self._banned) > REMEMBERED:
            del self._banned[next(iter(self._banned))]
        return True

    def banned(self, peer: PeerId) -> bool:
        ban = self._banned.get(peer)
        if ban is None:
            return False
        if ban[0] > trio.current_time():
            return True
        del self._banned[peer]
        return False

    def notices(self) -> list[str]:
        """A sentence for each peer that is banned now; if they're many, for the latest, and how many more there are."""
        told = [self._banned[peer][1] for peer in list(self._banned) if self.banned(peer)]
        more = len(told) - SHOWN
        return told if more <= 0 else [*told[-SHOWN:], f"{more} more peers are shut out: somebody makes up keys."]
