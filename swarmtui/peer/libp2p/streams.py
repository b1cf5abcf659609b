"""One stream of a yamux connection, and the words of its frames."""

from __future__ import annotations

import struct
from types import TracebackType
from typing import TYPE_CHECKING

import trio
from libp2p.abc import IMuxedStream
from libp2p.stream_muxer.exceptions import MuxedStreamClosed, MuxedStreamEOF, MuxedStreamReset

if TYPE_CHECKING:
    from swarmtui.peer.libp2p.muxer import LeanYamux

HEADER = struct.Struct("!BBHII")  # version, type, flags, stream, length
DATA, WINDOW, PING, GO_AWAY = range(4)
SYN, ACK, FIN, RST = 1, 2, 4, 8
INITIAL_WINDOW = 256 * 1024
MAX_FRAME = 64 * 1024 - HEADER.size


class ProtocolError(Exception):
    """The other side broke yamux's rules: the connection is closed."""


class LeanStream(IMuxedStream):
    """One stream. One task reads it, one writes."""

    def __init__(self, conn: LeanYamux, stream_id: int, inbound: bool) -> None:
        self.muxed_conn = conn
        self.stream_id = stream_id
        self.inbound = inbound
        self._conn = conn
        self._buffer = bytearray()
        self._changed = trio.lowlevel.ParkingLot()
        self._send_window = INITIAL_WINDOW
        self._receive_window = INITIAL_WINDOW
        self._consumed = 0
        self._ended = False  # the other side sends no more
        self._closed = False  # we send no more
        self._abandoned = False  # we read no more
        self._was_reset = False

    async def read(self, n: int | None = None) -> bytes:
        """Up to n bytes (None or -1: what there is), at least one.

        Raises:
            MuxedStreamEOF: the other side has finished.
            MuxedStreamReset: the stream or its connection broke.
        """
        while not self._buffer:
            if self._was_reset:
                raise MuxedStreamReset("reset")
            if self._ended:
                raise MuxedStreamEOF("finished")
            await self._changed.park()
        size = len(self._buffer) if n is None or n < 0 else min(n, len(self._buffer))
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._consumed += size
        if self._consumed >= INITIAL_WINDOW // 2 and not self._ended:
            credit, self._consumed = self._consumed, 0
            self._receive_window += credit
            await self._conn.send(WINDOW, 0, self.stream_id, credit)
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
        return data

    async def write(self, data: bytes) -> None:
        """Raises MuxedStreamClosed, MuxedStreamReset."""
        view = memoryview(data)
        while view:
            if self._was_reset:
                raise MuxedStreamReset("reset")
            if self._closed:
                raise MuxedStreamClosed("closed for writing")
            size = min(len(view), self._send_window, MAX_FRAME)
            if not size:
                await self._changed.park()
                continue
            self._send_window -= size
            await self._conn.send(DATA, 0, self.stream_id, size, bytes(view[:size]))
            view = view[size:]

    async def close_write(self) -> None:
        if not self._closed:
            self._closed = True
            await self._conn.send(WINDOW, FIN, self.stream_id, 0)
            self._conn.settle(self)

    async def close(self) -> None:
        """Finish: nothing more is sent, and what still comes is refused."""
        self._abandoned = True
        await self.close_write()

    async def reset(self) -> None:
        if not (self._was_reset or (self._closed and self._ended)):
            self.break_off()
            self._conn.forget(self)
            await self._conn.send(WINDOW, RST, self.stream_id, 0)

    def set_deadline(self, ttl: int) -> None:
        """Deadlines are trio's."""

    def get_remote_address(self) -> tuple[str, int] | None:
        return self._conn.get_remote_address()

    async def __aenter__(self) -> LeanStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- called by the connection

    @property
    def done(self) -> bool:
        return self._was_reset or (self._closed and self._ended)

    def take(self, data: bytes | bytearray) -> bool:
        """Data from the other side; False if nobody will read it."""
        self._receive_window -= len(data)
        if self._receive_window < 0:
            raise ProtocolError("more data than the window allows")
        if self._abandoned:
            return False
        self._buffer += data
        self._changed.unpark_all()
        return True

    def credit(self, size: int) -> None:
        self._send_window += size
        if self._send_window > 2**31:
            raise ProtocolError("an absurd window")
        self._changed.unpark_all()

    def finish(self) -> None:
        self._ended = True
        self._changed.unpark_all()

    def break_off(self) -> None:
        self._was_reset = self._closed = self._ended = True
        self._changed.unpark_all()
