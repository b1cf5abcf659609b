"""Ask a peer, answer a peer: one request and one answer over a stream of its own, each with its length in front."""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio
from libp2p.abc import INetStream
from libp2p.custom_types import TProtocol
from libp2p.host.basic_host import BasicHost
from libp2p.peer.id import ID

from swarmtui.peer.network import MAX_ANSWER_BYTES, Handler, NetworkError

log = logging.getLogger(__name__)

PROTOCOL = TProtocol("/swarmtui/repair/1")
MAX_REQUEST_BYTES = 256 * 1024
DEADLINE_S = 5.0
"""For a whole exchange, on either side."""
AT_ONCE_PER_PEER = 2
AT_ONCE = 16
LENGTH = 4


class Requests:
    """The request protocol on one host."""

    def __init__(self, host: BasicHost, handler: Handler, fault: Callable[[ID, str], None]) -> None:
        self._host, self._handler, self._fault = host, handler, fault
        self._serving: dict[ID, int] = {}
        host.set_stream_handler(PROTOCOL, self._serve)

    async def ask(self, peer: ID, request: bytes, deadline: float = DEADLINE_S) -> bytes:
        """Raises NetworkError (no answer in time, or none at all)."""
        if len(request) > MAX_REQUEST_BYTES:
            raise NetworkError(f"a request of {len(request)} bytes is too large")
        try:
            with trio.fail_after(deadline):
                stream = await self._host.new_stream(peer, [PROTOCOL])
                try:
                    await stream.write(len(request).to_bytes(LENGTH, "big") + request)
                    answer = await read_message(stream, MAX_ANSWER_BYTES)
                except BaseException:
                    await reset(stream)
                    raise
                await stream.close()
                return answer
        except trio.TooSlowError:
            raise NetworkError(f"no answer within {deadline:g} s") from None
        except TooLarge as error:
            self._fault(peer, str(error))
            raise NetworkError(f"no answer: {error}") from error
        except Exception as error:  # libp2p's and the stream's dozen kinds
            raise NetworkError(f"no answer: {error or type(error).__name__}") from error

    async def _serve(self, stream: INetStream) -> None:
        """Answer one request. Whatever goes wrong resets the stream and nothing else."""
        peer = stream.muxed_conn.peer_id
        if self._serving.get(peer, 0) >= AT_ONCE_PER_PEER or sum(self._serving.values()) >= AT_ONCE:
            await reset(stream)
            return
        self._serving[peer] = self._serving.get(peer, 0) + 1
        try:
            with trio.fail_after(DEADLINE_S):
                request = await read_message(stream, MAX_REQUEST_BYTES)
                answer = await self._handler(peer.to_base58(), request)
                if len(answer) > MAX_ANSWER_BYTES:
                    raise ValueError(f"an answer of {len(answer)} bytes is too large")
                await stream.write(len(answer).to_bytes(LENGTH, "big") + answer)
                await stream.close()
        except TooLarge as error:
            self._fault(peer, str(error))
            await reset(stream)
        except Exception as error:
            log.debug("a request of %s failed: %r", peer, error)
            await reset(stream)
        finally:
            self._serving[peer] -= 1
            if not self._serving[peer]:
                del self._serving[peer]


class TooLarge(Exception):
    """A message announces more bytes than allowed."""


async def read_message(stream: INetStream, most: int) -> bytes:
    """Raises TooLarge, EOFError, or what the stream raises."""
    length = int.from_bytes(await read_exactly(stream, LENGTH), "big")
    if length > most:
        raise TooLarge(f"a message of {length} bytes")
    return await read_exactly(stream, length)


async def read_exactly(stream: INetStream, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = await stream.read(size - len(data))
        if not piece:
            raise EOFError("the stream ended early")
        data += piece
    return bytes(data)


async def reset(stream: INetStream) -> None:
    with trio.move_on_after(1, shield=True):
        await stream.reset()
