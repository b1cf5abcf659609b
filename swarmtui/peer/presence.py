"""Presence: what a peer says of itself, signed, never in the log (docs/protocol.md, section 6).

Which presence of an author is the latest? Its wall clock can't tell: it may jump back, or be wrong from the start. So a
presence carries `run`, drawn when its peer starts, and `count`, which grows within the run. A peer accepts:

- of the run that it knows: a higher count only (a replay has a lower or equal one);
- of a run that it hasn't seen: if it is later than the one it knows, or that one has fallen silent or left;
- of a run that was replaced, or that said it's leaving: nothing any more;
- and a run that it hasn't seen must be fresh: its `at` near what the others' clocks say, or its author a neighbour,
  who is there for certain. So a presence recorded yesterday can't raise the dead for somebody who just came.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta
from nacl.exceptions import BadSignatureError

from swarmtui.plan.envelope import Identity, verify_key
from swarmtui.plan.ops import InvalidOp, PeerId
from swarmtui.plan.plain import check_plain

PREFIX = b"swarmtui/presence/1\0"
MAX_PRESENCE_BYTES = 4096
INTERVAL_S = 10.0
"""Every so often, in a small swarm."""
PER_PEER_S = 0.5
"""Stretch: a swarm of more than 20 peers sends at most two presences a second in all."""
SILENT_AFTER = 3
"""Intervals without a presence after which a peer is dropped."""
MAX_PEERS = 1_000
"""Presences kept; a swarm is smaller than that, a flood isn't."""
RETIRED = 16
"""Ended runs that are remembered of a peer."""
FRESH_MS = 60_000
MAX_SKEW_MS = 5_000

_Word = Annotated[str, Meta(max_length=80)]
_Line = Annotated[str, Meta(max_length=200)]
_Count = Annotated[int, Meta(ge=0, lt=1 << 53)]
_Key = Annotated[bytes, Meta(max_length=32)]


class Card(msgspec.Struct, frozen=True):
    """Who a peer is, for as long as it runs."""

    name: str
    role: str
    skills: tuple[str, ...] = ()
    model: str = ""
    machine: str = ""


class Presence(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a peer last said of itself."""

    peer: Annotated[str, Meta(min_length=1, max_length=128)]
    at: _Count
    """Unix ms by the sender's clock."""
    run: _Count
    """Drawn when the sender starts, greater for later starts (unix ms by its clock × 1024 + chance): tells its runs
    apart."""
    count: _Count
    """Grows with each presence of a run."""
    every_ms: Annotated[int, Meta(ge=1_000, le=300_000)] = int(INTERVAL_S * 1000)
    """The sender sends at least so often."""
    role: Annotated[str, Meta(max_length=40)] = ""
    name: _Word = ""
    skills: Annotated[tuple[Annotated[str, Meta(max_length=40)], ...], Meta(max_length=32)] = ()
    model: _Line = ""
    machine: _Line = ""
    doing: _Word = ""
    subject: _Line = ""
    since: _Count = 0
    """Unix ms since when it is doing this."""
    tokens_per_second_x10: _Count = 0
    ops: _Count = 0
    """Ops that it holds."""
    said: _Count = 0
    """Ops that it published itself in this run."""
    fingerprint: _Key = b""
    leaving: bool = False


_presence = msgspec.msgpack.Decoder(Presence)
_signed = msgspec.msgpack.Decoder(tuple[bytes, bytes])


class InvalidPresence(ValueError):
    """A presence is outside its limits, badly signed or undecodable."""


class _Claimed(msgspec.Struct, frozen=True):
    peer: str


_claimed = msgspec.msgpack.Decoder(_Claimed)


def seal_presence(identity: Identity, presence: Presence) -> bytes:
    """Sign a presence for the wire."""
    payload = msgspec.msgpack.encode(presence)
    return msgspec.msgpack.encode((payload, identity.sign(PREFIX + payload)))


@lru_cache(maxsize=256)
def open_presence(wire: bytes) -> Presence:
    """Check and decode a presence from the wire.

    The latest are remembered: the network's validator sees each, then the peer, and so do all peers of this process.

    Raises:
        InvalidPresence: it is too large, badly signed, undecodable or outside its limits.
    """
    if len(wire) > MAX_PRESENCE_BYTES:
        raise InvalidPresence("presence too large")
    try:
        payload, signature = _signed.decode(wire)
        key = verify_key(_claimed.decode(payload).peer)
        key.verify(PREFIX + payload, signature)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise InvalidPresence("undecodable presence") from error
    except (BadSignatureError, InvalidOp, ValueError) as error:
        raise InvalidPresence("badly signed presence") from error
    try:
        check_plain(payload)  # so that every peer reads it alike, and passes it on or doesn't
        return _presence.decode(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeError, InvalidOp) as error:
        raise InvalidPresence("undecodable presence") from error


def interval_s(peers: int) -> float:
    """How often a peer of a swarm of so many sends its presence."""
    return min(300.0, max(INTERVAL_S, PER_PEER_S * peers))


@dataclass(slots=True, eq=False)
class Heard:
    """A presence and when it came."""

    presence: Presence
    at: float
    """trio.current_time() when it was last heard."""
    lost: bool = False
    """It was our neighbour, and nothing was heard of it since the link broke (others may pass on what it says)."""

    @property
    def patience_s(self) -> float:
        """Silence after which the peer counts as gone."""
        return SILENT_AFTER * self.presence.every_ms / 1000

    @property
    def silent_from(self) -> float:
        """From when on it counts as gone if nothing more is heard, by trio.current_time()."""
        return self.at + self.patience_s


@dataclass(slots=True, eq=False)
class _Past:
    """What is remembered of an author, also after it has gone."""

    run: int
    count: int
    retired: tuple[int, ...] = ()
    """Its latest runs that have ended."""

    def retire(self) -> None:
        """Its run has ended."""
        self.retired = (*self.retired, self.run)[-RETIRED:]


class Presences:
    """The latest presence per peer. `heard` may be read by anybody."""

    def __init__(self, me: PeerId, now_ms: Callable[[], int]) -> None:
        self._me = me
        self._now_ms = now_ms
        self.heard: dict[PeerId, Heard] = {}
        self._offsets: dict[PeerId, int] = {}
        """How far each one's clock is ahead of ours, in ms: the most that its last two presences say. Being late on its
        way makes a presence look like one of a clock that is behind, never ahead."""
        self._latest: dict[PeerId, int] = {}
        """What the last one alone says."""
        self._ordered: list[int] = []
        """The same, sorted: each presence of somebody far away is compared with the median."""
        self._silent_from = math.inf
        """Until then nobody can have fallen silent."""
        self._past: OrderedDict[PeerId, _Past] = OrderedDict()

    def hear(self, presence: Presence, now: float, neighbours: Collection[PeerId]) -> str:
        """Take a presence that was opened.

        Args:
            presence: as it came.
            now: trio.current_time().
            neighbours: peers that are connected now.

        Returns:
            "" if it was accepted, else why not.
        """
        peer = presence.peer
        if peer == self._me:
            return "own presence"
        refusal = self._refusal(presence, neighbours)
        if refusal:
            return refusal
        self._remember(presence)
        if presence.leaving:
            self.drop(peer)
            return ""
        heard = self.heard[peer] = Heard(presence, now)
        self._silent_from = min(self._silent_from, heard.silent_from)
        latest = presence.at - self._now_ms()
        offset = max(latest, self._latest.get(peer, latest))
        self._forget_offset(peer)
        self._offsets[peer], self._latest[peer] = offset, latest
        insort(self._ordered, offset)
        return ""

    def drop(self, peer: PeerId) -> None:
        """Forget a presence, but not which ones are old."""
        self.heard.pop(peer, None)
        self._forget_offset(peer)

    def drop_silent(self, now: float) -> list[PeerId]:
        """Drop those that haven't been heard for three of their intervals, and say which."""
        if now < self._silent_from:
            return []
        silent = [peer for peer, heard in self.heard.items() if now > heard.silent_from]
        for peer in silent:
            self.drop(peer)
        self._silent_from = min((heard.silent_from for heard in self.heard.values()), default=math.inf)
        return silent

    def excuse(self, seconds: float) -> None:
        """We were stopped for so long: nobody's silence in that time is theirs."""
        for heard in self.heard.values():
            heard.at += seconds

    @property
    def skew_ms(self) -> int:
        """How far the median of the others' clocks is ahead of ours (of two in the middle, the one nearer to ours)."""
        offsets = self._ordered
        if not offsets:
            return 0
        return min(offsets[(len(offsets) - 1) // 2], offsets[len(offsets) // 2], key=abs)

    def clock_notice(self) -> str:
        """Say so if our clock is off, with the remedy; '' if it isn't."""
        skew = self.skew_ms
        if abs(skew) <= MAX_SKEW_MS:
            return ""
        way = "behind" if skew > 0 else "ahead of"
        return (
            f"This computer's clock is {abs(skew) / 1000:.0f} s {way} the other peers' clocks: "
            "set it (for example: timedatectl set-ntp true)"
        )

    def _refusal(self, presence: Presence, neighbours: Collection[PeerId]) -> str:
        peer = presence.peer
        neighbour = peer in neighbours
        past = self._past.get(peer)
        if past is not None and presence.run == past.run:
            return "" if presence.count > past.count else "replayed presence"
        if past is not None and presence.run in past.retired:
            return "presence of an earlier run"
        if past is not None and presence.run < past.run and peer in self.heard:
            return "presence of an earlier run"
        if not neighbour and abs(presence.at - self._now_ms() - self.skew_ms) > FRESH_MS:
            return "stale presence"
        if peer not in self.heard and len(self.heard) >= MAX_PEERS and not (neighbour and self._make_room(neighbours)):
            return "too many peers"
        return ""

    def _forget_offset(self, peer: PeerId) -> None:
        self._latest.pop(peer, None)
        offset = self._offsets.pop(peer, None)
        if offset is not None:
            del self._ordered[bisect_left(self._ordered, offset)]

    def _make_room(self, neighbours: Collection[PeerId]) -> bool:
        """Drop somebody who isn't a neighbour, for somebody who is."""
        far = next((peer for peer in self.heard if peer not in neighbours), None)
        if far is not None:
            self.drop(far)
        return far is not None

    def _remember(self, presence: Presence) -> None:
        past = self._past.get(presence.peer)
        if past is None:
            past = self._past[presence.peer] = _Past(presence.run, 0)
            if len(self._past) > 4 * MAX_PEERS:
                self._past.popitem(last=False)
        if presence.run != past.run:
            past.retire()
        past.run, past.count = presence.run, presence.count
        if presence.leaving:
            past.retire()
            past.run = -1
        self._past.move_to_end(presence.peer)
