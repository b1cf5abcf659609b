"""What the client and the engine process say to each other: length-prefixed MessagePack over two pipes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, TypeAlias

import msgspec

MAX_FRAME = 16 * 1024 * 1024
_LENGTH = struct.Struct(">I")


class Message(msgspec.Struct, frozen=True, tag_field="is"):
    """Anything said."""


class Open(Message, frozen=True, tag="open"):
    """The first word to an engine: load this. 0 means: choose."""

    path: str
    threads: int = 0
    context: int = 0
    """Tokens that a single request may take, prompt and answer."""
    slots: int = 0
    gpu_layers: int = 0
    width: int = 0
    """Answers that go on in one step, as measured before; 0: not measured."""
    measure: bool = False
    """Measure at once how fast it reads and writes, alone and several answers in a step, and tell."""


class Generate(Message, frozen=True, tag="generate"):
    """See `llm.model.Request`."""

    id: int
    system: str
    prompt: str
    schema: dict[str, Any] | None
    max_tokens: int
    temperature: float
    seed: int
    priority: int = 0


class Weigh(Message, frozen=True, tag="weigh"):
    """See `llm.model.Likelihood`."""

    id: int
    prefix: str
    continuations: list[str]
    priority: int = 0


class Cancel(Message, frozen=True, tag="cancel"):
    """Stop that request; answered by `Stopped` unless it has ended already."""

    id: int


class Beat(Message, frozen=True, tag="beat"):
    """A sign of life: it's at work, and the next sign will come within about so many seconds."""

    seconds: float


class Speed(msgspec.Struct, frozen=True):
    """How fast answers are written, so many of them in one step."""

    width: int
    per_second: float
    """Tokens, of all answers together: the middle of the tries."""
    spread: float
    """By how much the tries differ, as a share of the middle (half of the distance between the quarters)."""


class Ready(Message, frozen=True, tag="ready"):
    """The model is loaded."""

    slots: int
    context: int
    threads: int
    notices: list[str]
    """What a person should know, e.g. that there's no chat template."""
    express: int = 0
    """Further slots, for urgent requests alone."""
    width: int = 0
    """Answers that go on in one step."""
    seconds: float = 0.0
    """How long the loading took."""
    prefill: float = 0.0
    """Tokens per second read, if measured."""
    speeds: list[Speed] = []
    """Tokens per second written, if measured."""


class Refused(Message, frozen=True, tag="refused"):
    """The model can't be used; the engine ends."""

    reason: str
    remedy: str


class Piece(Message, frozen=True, tag="piece"):
    """Some text of an answer."""

    id: int
    text: str


class Done(Message, frozen=True, tag="done"):
    """An answer."""

    id: int
    text: str
    value: Any
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cut: bool


class Weighed(Message, frozen=True, tag="weighed"):
    """The mean log probabilities."""

    id: int
    means: list[float]
    tokens_in: int
    tokens_cached: int


class Failed(Message, frozen=True, tag="failed"):
    """This request failed, the engine goes on."""

    id: int
    reason: str
    remedy: str


class Stopped(Message, frozen=True, tag="stopped"):
    """This request was cancelled, its slot is free."""

    id: int
    evaluated: int = 0
    """Tokens of its prompt that were evaluated in vain."""
    tokens_out: int = 0
    """Tokens written in vain."""


ToEngine: TypeAlias = Open | Generate | Weigh | Cancel
FromEngine: TypeAlias = Beat | Ready | Refused | Piece | Done | Weighed | Failed | Stopped

_encoder = msgspec.msgpack.Encoder()
_to_engine: msgspec.msgpack.Decoder[ToEngine] = msgspec.msgpack.Decoder(ToEngine)
_from_engine: msgspec.msgpack.Decoder[FromEngine] = msgspec.msgpack.Decoder(FromEngine)


class WireError(Exception):
    """The other side said something that isn't a message."""


def frame(message: Message) -> bytes:
    """A message with its length before it."""
    data = _encoder.encode(message)
    return _LENGTH.pack(len(data)) + data


class Unframer:
    """Cuts a stream of bytes from the engine into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[FromEngine]:
        """The messages that are whole by now.

        Raises:
            WireError: what came isn't a message; the stream is of no use any more.
        """
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME:
                raise WireError(f"a frame of {length} bytes")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            try:
                yield _from_engine.decode(body)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                raise WireError(str(error)) from None


def read(stream: BinaryIO) -> ToEngine | None:
    """The next message to the engine, blocking; None when the client is gone (or talks nonsense)."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length) if length <= MAX_FRAME else b""
    try:
        return _to_engine.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
