"""What a peer needs of a network. libp2p/ and memory.py provide it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec
import trio

from swarmtui.plan.ops import PeerId

MAX_FRAME_BYTES = 128 * 1024
"""A gossip frame: ops bundled together, or a presence."""
MAX_ANSWER_BYTES = 1024 * 1024
"""A request's answer (repair)."""


class NetworkError(Exception):
    """A request couldn't be answered: the peer is gone, slow or refused. Try another, or later."""


class Frame(msgspec.Struct, frozen=True):
    """Bytes from the topic. `source` is the neighbour or publisher that the network vouches for ('' if unknown)."""

    data: bytes
    source: PeerId


class Joined(msgspec.Struct, frozen=True):
    """A peer is connected and has subscribed to our topic."""

    peer: PeerId


class Left(msgspec.Struct, frozen=True):
    """A peer's last connection has closed."""

    peer: PeerId


Event = Frame | Joined | Left
Handler = Callable[[PeerId, bytes], Awaitable[bytes]]
"""Answers a request from a peer. May raise: the network turns it into an error at the asker, never into its own end."""
Validator = Callable[[bytes], bool | None]
"""Says at once whether a frame is fit to be passed on. Must be fast; what it raises counts as False.

False: it's faulty, and so is the neighbour who handed it over. None: we can't afford to look at it now (a flood): it's
dropped, and nobody is struck for it; repair brings what it held."""


class Network(Protocol):
    """One node on the topic.

    `run` is started in a nursery and ends when it's cancelled, having left politely (others notice within a second).
    """

    @property
    def peer_id(self) -> PeerId: ...

    @property
    def addresses(self) -> Sequence[str]:
        """Full multiaddrs (with /p2p/…) that others can dial; empty in memory."""
        ...

    @property
    def neighbours(self) -> Sequence[PeerId]:
        """Connected peers on the topic."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What a person should know (no mDNS, no interface, banned peers …), each with its remedy."""
        ...

    @property
    def sent(self) -> int:
        """Frames published and requests asked by this node; what it passes on for others isn't counted."""
        ...

    async def run(
        self,
        events: trio.MemorySendChannel[Event],
        handler: Handler,
        validator: Validator,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None: ...

    async def publish(self, data: bytes) -> None:
        """Gossip a frame of at most MAX_FRAME_BYTES to the topic. Never to ourselves.

        Raises:
            ValueError: the frame is too large.
        """
        ...

    async def ask(self, peer: PeerId, request: bytes) -> bytes:
        """Send a request, return the answer.

        Raises:
            NetworkError: no answer within the deadline, or none at all.
        """
        ...

    async def connect(self, address: str) -> None:
        """Dial a multiaddr and keep it: it's redialled when it drops.

        Raises:
            NetworkError: the address is malformed.
        """
        ...

    def strike(self, peer: PeerId, reason: str) -> None:
        """Count a fault of this neighbour; enough of them ban it for a while."""
        ...
