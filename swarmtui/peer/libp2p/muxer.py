"""Yamux (https://github.com/hashicorp/yamux/blob/master/spec.md), spoken strictly and cheaply.

Used instead of libp2p's own for four reasons: its receive window isn't enforced, so a peer can fill our memory; a
write that is cancelled half-way corrupts the connection; it never notices a peer that has stopped answering; and it
costs half of the CPU of a message in locks and log lines. One task reads, one writes (joining what waits into one
encrypted message), one watches. Interoperates with any yamux: the wire is the same.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable

import trio
from libp2p.abc import IMuxedConn, ISecureConn
from libp2p.connection_types import ConnectionType
from libp2p.peer.id import ID
from libp2p.stream_muxer.exceptions import MuxedConnUnavailable, MuxedStreamError, MuxedStreamReset
from multiaddr import Multiaddr

from swarmtui.peer.libp2p.streams import (
    ACK,
    DATA,
    FIN,
    GO_AWAY,
    HEADER,
    INITIAL_WINDOW,
    PING,
    RST,
    SYN,
    WINDOW,
    LeanStream,
    ProtocolError,
)

log = logging.getLogger(__name__)

WRITE_BATCH = 60 * 1024
"""Frames joined into one noise message (at most 65,519 bytes)."""
WRITE_AHEAD = 512 * 1024
"""What may wait to be written on one connection before writers wait too."""
UNREAD = 4 * 1024 * 1024
"""What may wait to be written before who has streams refused counts as one who only asks and never reads."""
MAX_INBOUND_STREAMS = 32
PING_AFTER_S = 2.5
"""Silence after which the other side is asked for a sign of life."""
PATIENCE_S = 4.0
"""How long it may take to give one. Together the time until a stopped process counts as gone."""
STUCK_S = 20.0
"""A single write that takes longer means that the other side doesn't read."""
GOODBYE_S = 0.25


class LeanYamux(IMuxedConn):
    """One multiplexed connection. `start` runs it; `watched`: close it when the other side stops answering."""

    def __init__(self, conn: ISecureConn, peer_id: ID, watched: bool = True) -> None:
        self.secured_conn = conn
        self.peer_id = peer_id
        self.watched = watched
        self.event_started = trio.Event()
        self.event_closed = trio.Event()
        self.on_close: Callable[[], Awaitable[None]] | None = None
        self._next_id = 1 if conn.is_initiator else 2
        self._streams: dict[int, LeanStream] = {}
        self._inbound = 0
        self._offer, self._offered = trio.open_memory_channel[LeanStream](MAX_INBOUND_STREAMS)
        self._closing = False
        self._out: deque[bytes] = deque()
        self._out_bytes = 0
        self._writer_wake = trio.Event()
        self._room = trio.lowlevel.ParkingLot()
        self._scope: trio.CancelScope | None = None
        self._heard = trio.current_time()

    # --- what libp2p calls

    async def start(self) -> None:
        """Run until the connection ends."""
        if self.event_started.is_set():
            return
        try:
            async with trio.open_nursery() as nursery:
                self._scope = nursery.cancel_scope
                nursery.start_soon(self._until_end, self._read)
                nursery.start_soon(self._until_end, self._write)
                if self.watched:
                    nursery.start_soon(self._until_end, self._watch)
                self.event_started.set()
        finally:
            await self._end()

    @property
    def is_initiator(self) -> bool:
        return self.secured_conn.is_initiator

    @property
    def is_established(self) -> bool:
        return self.event_started.is_set() and not self._closing

    @property
    def is_closed(self) -> bool:
        return self.event_closed.is_set()

    async def open_stream(self) -> LeanStream:
        if self._closing:
            raise MuxedConnUnavailable("closed")
        stream = LeanStream(self, self._next_id, inbound=False)
        self._next_id += 2
        self._streams[stream.stream_id] = stream
        await self.send(WINDOW, SYN, stream.stream_id, 0)
        return stream

    async def accept_stream(self) -> LeanStream:
        try:
            return await self._offered.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            raise MuxedConnUnavailable("closed") from None

    async def close(self) -> None:
        """Say goodbye and close; waits for a quarter of a second at most."""
        if not self._closing:
            self._closing = True
            self._queue(HEADER.pack(0, GO_AWAY, 0, 0, 0))
            with trio.move_on_after(GOODBYE_S):
                while self._out_bytes and not self.event_closed.is_set():
                    await self._room.park()
        if self._scope is not None:
            self._scope.cancel()
            await self.event_closed.wait()
        else:
            await self._end()

    def get_transport_addresses(self) -> list[Multiaddr]:
        return self.secured_conn.get_transport_addresses()

    def get_connection_type(self) -> ConnectionType:
        return self.secured_conn.get_connection_type()

    def get_remote_address(self) -> tuple[str, int] | None:
        return self.secured_conn.get_remote_address()

    # --- what streams call

    async def send(self, kind: int, flags: int, stream_id: int, length: int, body: bytes = b"") -> None:
        """Queue a frame; waits while too much is queued."""
        if self._closing:
            if kind == DATA:
                raise MuxedStreamReset("the connection is closed")
            return
        self._queue(HEADER.pack(0, kind, flags, stream_id, length) + body)
        while self._out_bytes > WRITE_AHEAD:
            await self._room.park()
            if self._closing:
                raise MuxedStreamError("the connection is closed")
        await trio.lowlevel.checkpoint_if_cancelled()

    def settle(self, stream: LeanStream) -> None:
        """Forget the stream if both sides have finished."""
        if stream.done:
            self.forget(stream)

    def forget(self, stream: LeanStream) -> None:
        if self._streams.pop(stream.stream_id, None) is not None and stream.inbound:
            self._inbound -= 1

    # --- the tasks

    async def _until_end(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run a task of the connection; whatever ends it ends the connection, and only that."""
        try:
            await task()
        except Exception as error:
            log.debug("connection to %s ends: %r", self.peer_id, error)
        finally:
            if self._scope is not None:
                self._scope.cancel()

    async def _end(self) -> None:
        self._closing = True
        self._offer.close()
        for stream in list(self._streams.values()):
            stream.break_off()
        self._streams.clear()
        self._room.unpark_all()
        try:
            await self.secured_conn.close()
        except Exception as error:
            log.debug("closing the socket to %s: %r", self.peer_id, error)
        finally:
            self.event_closed.set()
        if self.on_close is not None:
            await self.on_close()

    def _queue(self, frame: bytes) -> None:
        self._out.append(frame)
        self._out_bytes += len(frame)
        self._writer_wake.set()

    async def _write(self) -> None:
        while True:
            while not self._out:
                self._writer_wake = trio.Event()
                await self._writer_wake.wait()
            parts = [self._out.popleft()]
            size = len(parts[0])
            while self._out and size + len(self._out[0]) <= WRITE_BATCH:
                parts.append(self._out.popleft())
                size += len(parts[-1])
            with trio.fail_after(STUCK_S):
                await self.secured_conn.write(b"".join(parts))
            self._out_bytes -= size
            if self._out_bytes <= WRITE_AHEAD // 2 or self._closing:
                self._room.unpark_all()

    async def _watch(self) -> None:
        """End the connection when the other side gives no sign of life (SIGSTOP, a pulled cable)."""
        while True:
            await trio.sleep(PING_AFTER_S)
            if trio.current_time() - self._heard < PING_AFTER_S * 0.9:
                continue
            asked = trio.current_time()
            self._queue(HEADER.pack(0, PING, SYN, 0, int(asked) & 0xFFFFFFFF))
            for _ in range(int(PATIENCE_S * 4)):
                # In small steps: if it's us who were stopped, the clock jumps but the steps still have to be taken.
                await trio.sleep(0.25)
                if self._heard >= asked:
                    break
            else:
                log.info("%s doesn't answer: hanging up", self.peer_id)
                return

    async def _read(self) -> None:
        buffer = bytearray()
        while True:
            buffer += await self.secured_conn.read(None)
            self._heard = trio.current_time()
            at = 0
            while len(buffer) - at >= HEADER.size:
                version, kind, flags, stream_id, length = HEADER.unpack_from(buffer, at)
                if version or kind > GO_AWAY:
                    raise ProtocolError("not yamux")
                body = b""
                if kind == DATA:
                    if length > INITIAL_WINDOW:
                        raise ProtocolError("an oversized frame")
                    end = at + HEADER.size + length
                    if len(buffer) < end:
                        break
                    body = bytes(buffer[at + HEADER.size : end])
                at += HEADER.size + len(body)
                if not self._handle(kind, flags, stream_id, length, body):
                    return
            del buffer[:at]

    def _handle(self, kind: int, flags: int, stream_id: int, length: int, body: bytes) -> bool:
        """One frame; False if the other side says goodbye. Raises ProtocolError."""
        if kind == PING:
            if flags & SYN and self._out_bytes < WRITE_AHEAD:
                self._queue(HEADER.pack(0, PING, ACK, 0, length))
            return True
        if kind == GO_AWAY:
            return False
        stream = self._streams.get(stream_id)
        if flags & SYN:
            if stream is not None or stream_id % 2 == self._next_id % 2 or not stream_id:
                raise ProtocolError("a stream id that isn't free")
            stream = self._open_inbound(stream_id)
        if stream is None:
            return True  # of a stream that we've forgotten: crossed on the way
        if kind == WINDOW:
            stream.credit(length)
        elif body and not stream.take(body):
            stream.break_off()
            self.forget(stream)
            self._refuse(stream_id)
        if flags & FIN:
            stream.finish()
        if flags & RST:
            stream.break_off()
        self.settle(stream)
        return True

    def _open_inbound(self, stream_id: int) -> LeanStream | None:
        stream = LeanStream(self, stream_id, inbound=True)
        try:
            if self._inbound >= MAX_INBOUND_STREAMS or self._out_bytes > 2 * WRITE_AHEAD:
                raise trio.WouldBlock
            self._offer.send_nowait(stream)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            self._refuse(stream_id)
            return None
        self._streams[stream_id] = stream
        self._inbound += 1
        self._queue(HEADER.pack(0, WINDOW, ACK, stream_id, 0))
        return stream

    def _refuse(self, stream_id: int) -> None:
        """Reset a stream of the other side's. Raises ProtocolError if it takes none of what waits for it."""
        if self._out_bytes > UNREAD:
            raise ProtocolError("it asks and doesn't read")
        self._queue(HEADER.pack(0, WINDOW, RST, stream_id, 0))
