"""Our yamux, against itself over an in-memory connection and against frames written by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from libp2p.peer.id import ID
from libp2p.stream_muxer.exceptions import MuxedConnUnavailable, MuxedStreamClosed, MuxedStreamEOF, MuxedStreamReset

from swarmtui.peer.libp2p.muxer import MAX_INBOUND_STREAMS, PATIENCE_S, PING_AFTER_S, LeanYamux
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
)

PEER = ID(b"\x00\x24\x08\x01\x12\x20" + b"x" * 32)


class Secured:
    """What the muxer needs of a secured connection, over a memory stream."""

    def __init__(self, stream: trio.abc.Stream, is_initiator: bool) -> None:
        self.stream, self.is_initiator = stream, is_initiator

    async def read(self, n: int | None = None) -> bytes:
        data = await self.stream.receive_some()
        if not data:
            raise EOFError
        return bytes(data)

    async def write(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def close(self) -> None:
        await self.stream.aclose()


def muxer(stream: trio.abc.Stream, is_initiator: bool, watched: bool = False) -> LeanYamux:
    conn: Any = Secured(stream, is_initiator)
    return LeanYamux(conn, PEER, watched=watched)


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[LeanYamux, LeanYamux]]:
    left, right = trio.testing.memory_stream_pair()
    one, two = muxer(left, True), muxer(right, False)
    async with trio.open_nursery() as nursery:
        for each in (one, two):
            nursery.start_soon(each.start)
            await each.event_started.wait()
        yield one, two
        await one.close()
        await two.close()


@asynccontextmanager
async def by_hand(watched: bool = False) -> AsyncIterator[tuple[LeanYamux, trio.abc.Stream]]:
    """A muxer (the responder), and the raw stream to it."""
    left, right = trio.testing.memory_stream_pair()
    conn = muxer(right, False, watched)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(conn.start)
        await conn.event_started.wait()
        yield conn, left
        await conn.close()


async def streams(one: LeanYamux, two: LeanYamux) -> tuple[LeanStream, LeanStream]:
    there = await one.open_stream()
    return there, await two.accept_stream()


async def read_all(stream: LeanStream) -> bytes:
    data = b""
    while True:
        try:
            data += await stream.read(10_000)
        except MuxedStreamEOF:
            return data


async def test_data_of_any_size_both_ways() -> None:
    async with pair() as (one, two):
        here, there = await streams(one, two)
        data = bytes(range(256)) * 8000  # eight windows
        async with trio.open_nursery() as nursery:

            async def write(stream: LeanStream) -> None:
                await stream.write(data)
                await stream.close_write()

            nursery.start_soon(write, here)
            nursery.start_soon(write, there)
            assert await read_all(there) == data
            assert await read_all(here) == data
        await trio.testing.wait_all_tasks_blocked()
        assert not one._streams
        assert not two._streams


async def test_many_streams_at_once() -> None:
    async with pair() as (one, two):
        for number in range(300):
            here, there = await streams(*((one, two) if number % 2 else (two, one)))
            await here.write(b"%d" % number)
            await here.close_write()
            assert await read_all(there) == b"%d" % number
            await there.close()
        await trio.testing.wait_all_tasks_blocked()
        assert not one._streams
        assert not two._streams


async def test_reset_reaches_the_other_side() -> None:
    async with pair() as (one, two):
        here, there = await streams(one, two)
        await here.reset()
        with pytest.raises(MuxedStreamReset):
            await there.read()
        with pytest.raises(MuxedStreamReset):
            await there.write(b"x")
        assert not one._streams
        assert not two._streams


async def test_data_before_a_reset_or_an_end_is_still_read() -> None:
    async with pair() as (one, two):
        here, there = await streams(one, two)
        await here.write(b"last words")
        await here.close_write()
        with pytest.raises(MuxedStreamClosed):
            await here.write(b"x")
        await trio.testing.wait_all_tasks_blocked()
        assert await there.read() == b"last words"
        with pytest.raises(MuxedStreamEOF):
            await there.read()


async def test_what_comes_after_close_is_refused() -> None:
    async with pair() as (one, two):
        here, there = await streams(one, two)
        await there.close()
        await here.write(b"too late")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(MuxedStreamReset):
            await here.write(b"x")


async def test_a_cancelled_write_leaves_the_connection_whole() -> None:
    async with pair() as (one, two):
        here, there = await streams(one, two)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(here.write, b"x" * (3 * INITIAL_WINDOW))
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        await here.reset()
        again, there = await streams(one, two)
        await again.write(b"fine")
        assert await there.read() == b"fine"


async def test_closing_ends_everything_on_both_sides() -> None:
    async with pair() as (one, two):
        here, there = await streams(one, two)
        await one.close()
        await two.event_closed.wait()
        assert one.is_closed
        for stream in (here, there):
            with pytest.raises(MuxedStreamReset):
                await stream.read()
        with pytest.raises(MuxedConnUnavailable):
            await two.open_stream()
        with pytest.raises(MuxedConnUnavailable):
            await two.accept_stream()


async def test_more_streams_than_allowed_are_refused() -> None:
    async with pair() as (one, two):
        opened = [await one.open_stream() for _ in range(MAX_INBOUND_STREAMS + 5)]
        await trio.testing.wait_all_tasks_blocked()
        assert sum(stream.done for stream in opened) == 5
        assert not two.is_closed


async def test_who_asks_for_streams_and_reads_none_of_the_answers_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stuck(self: Secured, data: bytes) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(Secured, "write", stuck)
    monkeypatch.setattr("swarmtui.peer.libp2p.muxer.STUCK_S", float("inf"))
    monkeypatch.setattr("swarmtui.peer.libp2p.muxer.UNREAD", 100_000)
    async with by_hand() as (conn, raw):
        await raw.send_all(b"".join(HEADER.pack(0, WINDOW, SYN, number, 0) for number in range(1, 40_000, 2)))
        with trio.fail_after(60):
            await conn.event_closed.wait()
        assert conn._out_bytes < 110_000


@pytest.mark.parametrize(
    "frames",
    [
        HEADER.pack(1, DATA, SYN, 1, 0),
        HEADER.pack(0, 4, 0, 1, 0),
        HEADER.pack(0, WINDOW, SYN, 2, 0),
        HEADER.pack(0, WINDOW, SYN, 0, 0),
        HEADER.pack(0, WINDOW, SYN, 1, 0) * 2,
        HEADER.pack(0, DATA, SYN, 1, INITIAL_WINDOW + 1),
        HEADER.pack(0, WINDOW, SYN, 1, 2**32 - 1),
        HEADER.pack(0, WINDOW, SYN, 1, 0) + (HEADER.pack(0, DATA, 0, 1, 60_000) + bytes(60_000)) * 5,
        HEADER.pack(0, GO_AWAY, 0, 0, 0),
        b"GET / HTTP/1.1\r\nHost: x\r\n",
    ],
)
async def test_frames_that_break_the_rules_close_the_connection(frames: bytes) -> None:
    async with by_hand() as (conn, raw):
        await raw.send_all(frames)
        with trio.fail_after(5):
            await conn.event_closed.wait()


async def test_frames_as_others_write_them() -> None:
    """SYN with data, FIN with data, a window with the SYN, frames for unknown streams, pings: all in the spec."""
    async with by_hand() as (conn, raw):
        await raw.send_all(
            HEADER.pack(0, WINDOW, FIN | RST, 77, 0)
            + HEADER.pack(0, DATA, 0, 77, 3)
            + b"abc"
            + HEADER.pack(0, PING, SYN, 0, 42)
            + HEADER.pack(0, DATA, SYN | FIN, 1, 5)
            + b"hello"
            + HEADER.pack(0, WINDOW, SYN, 3, 1000)
        )
        stream = await conn.accept_stream()
        assert await stream.read() == b"hello"
        with pytest.raises(MuxedStreamEOF):
            await stream.read()
        assert (await conn.accept_stream())._send_window == INITIAL_WINDOW + 1000
        expected = HEADER.pack(0, PING, ACK, 0, 42) + b"".join(HEADER.pack(0, WINDOW, ACK, n, 0) for n in (1, 3))
        answer = b""
        while len(answer) < len(expected):
            answer += await raw.receive_some()
        assert answer == expected


async def test_silence_ends_a_watched_connection(autojump_clock: trio.testing.MockClock) -> None:
    async with by_hand(watched=True) as (conn, raw):
        begun = trio.current_time()
        ping = await raw.receive_some()
        assert HEADER.unpack(ping)[1:3] == (PING, SYN)
        await raw.send_all(HEADER.pack(0, PING, ACK, 0, HEADER.unpack(ping)[4]))
        await conn.event_closed.wait()
        assert trio.current_time() - begun < 2 * PING_AFTER_S + PATIENCE_S + 2


async def test_an_answer_keeps_it_open(autojump_clock: trio.testing.MockClock) -> None:
    async with by_hand(watched=True) as (conn, raw):

        async def answer() -> None:
            async for ping in raw:
                await raw.send_all(HEADER.pack(0, PING, ACK, 0, HEADER.unpack(ping)[4]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            await trio.sleep(120)
            assert not conn.is_closed
            nursery.cancel_scope.cancel()
