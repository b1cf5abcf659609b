"""What gossip flows through: a cache of what was seen, a queue to each neighbour, a reader from it."""

from __future__ import annotations

from collections import deque

import trio
from libp2p.abc import INetStream
from libp2p.utils.varint import encode_uvarint

MAX_RPC_BYTES = 1024 * 1024
"""Inbound; libp2p's own default, so that other implementations' bundles fit."""
MERGE_BYTES = 128 * 1024
"""Outbound: what waits for a neighbour is sent as one RPC up to about this size."""
QUEUE_BYTES = 8 * 1024 * 1024
"""What may wait for one slow neighbour. Beyond it frames are dropped (repair brings them later)."""


class Misbehaviour(Exception):
    """What a neighbour sent can't have come from an honest one. Its stream is reset and it gets a strike."""


class SeenCache:
    """Ids of messages of the last two minutes, first seen.

    Replaces libp2p's LastSeenCache, which runs a thread per Pubsub and never forgets what keeps coming.
    """

    def __init__(self, seconds: float = 120.0, most: int = 50_000) -> None:
        self._seconds, self._most = seconds, most
        self._until: dict[bytes, float] = {}

    def add(self, key: bytes) -> bool:
        """Remember; True if it's new."""
        now = trio.current_time()
        if self._until.get(key, 0.0) > now:
            return False
        self._until.pop(key, None)
        self._until[key] = now + self._seconds
        while self._until:  # in order of insertion, so the oldest come first
            oldest = next(iter(self._until))
            if self._until[oldest] > now and len(self._until) <= self._most:
                break
            del self._until[oldest]
        return True

    def has(self, key: bytes) -> bool:
        return self._until.get(key, 0.0) > trio.current_time()

    def stop(self) -> None:
        """Nothing to stop; Pubsub's owner may call it."""


class SendQueue:
    """Serialised RPCs waiting for one neighbour.

    Protobuf messages merge by concatenation, so what waits is joined and sent as one frame: one encryption and one
    write for many messages. Replaces RpcQueue (32 entries, silently dropping; copies and splits every RPC for every
    neighbour).
    """

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._wake = trio.Event()
        self._closed = False

    def push(self, rpc: bytes) -> bool:
        """False if the queue is closed or full: dropped."""
        if self._closed or self._bytes + len(rpc) > QUEUE_BYTES:
            return False
        self._waiting.append(rpc)
        self._bytes += len(rpc)
        self._wake.set()
        return True

    async def pop(self) -> bytes | None:
        """All that waits, up to MERGE_BYTES (at least one RPC); None once closed."""
        while not self._waiting:
            if self._closed:
                return None
            self._wake = trio.Event()
            await self._wake.wait()
        parts = [self._waiting.popleft()]
        size = len(parts[0])
        while self._waiting and size + len(self._waiting[0]) <= MERGE_BYTES:
            parts.append(self._waiting.popleft())
            size += len(parts[-1])
        self._bytes -= size
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._bytes = 0
        self._wake.set()


class RpcReader:
    """Length-prefixed RPCs from a stream, read in large pieces.

    libp2p reads the prefix byte by byte, each through four locks.
    """

    def __init__(self, stream: INetStream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    async def next(self) -> bytes:
        """The next RPC. Raises Misbehaviour, or what the stream raises when it ends."""
        while True:
            length, used = self._prefix()
            if used and len(self._buffer) >= used + length:
                rpc = bytes(self._buffer[used : used + length])
                del self._buffer[: used + length]
                return rpc
            piece = await self._stream.read(65536)
            if not piece:
                raise trio.EndOfChannel
            self._buffer += piece

    def _prefix(self) -> tuple[int, int]:
        length = 0
        for used, byte in enumerate(self._buffer[:5], 1):
            length |= (byte & 0x7F) << (7 * (used - 1))
            if byte < 0x80:
                if length > MAX_RPC_BYTES:
                    raise Misbehaviour(f"an RPC of {length} bytes")
                return length, used
        if len(self._buffer) >= 5:
            raise Misbehaviour("garbage instead of a length")
        return 0, 0


def prefixed(rpc: bytes) -> bytes:
    return bytes(encode_uvarint(len(rpc))) + rpc
