"""What travels on the topic: ops bundled together, and presences (docs/protocol.md, section 5).

A frame is one MessagePack map with either key or both: {"ops": [[payload, signature], …], "presence": [payload,
signature]}. Keys that a later version adds are ignored. Opening an op costs a signature check, so ops that were opened
a moment ago are remembered: the network's validator and the peer behind it see each frame twice, a gossip bundle and
its repetition more often, and all peers of this process see the same ops.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

import msgspec

from swarmtui.plan.envelope import open_op, to_wire
from swarmtui.plan.ops import InvalidOp, Op, PeerId

from .network import MAX_FRAME_BYTES

_ENVELOPE = 64
"""Bytes of a frame besides its ops and its presence, with room to spare."""
_REMEMBERED = 8 * 1024 * 1024


class _Map(msgspec.Struct, frozen=True):
    ops: list[msgspec.Raw] = []
    presence: msgspec.Raw = msgspec.Raw(b"")


class _Author(msgspec.Struct, frozen=True):
    author: str


_frame = msgspec.msgpack.Decoder(_Map)
_signed = msgspec.msgpack.Decoder(tuple[bytes, bytes])
_author = msgspec.msgpack.Decoder(_Author)


class InvalidFrame(ValueError):
    """Bytes from the topic that aren't a frame."""


class Parts(msgspec.Struct, frozen=True):
    """A frame taken apart; nothing in it is checked yet."""

    ops: tuple[bytes, ...]
    """Each as :func:`swarmtui.plan.envelope.open_op` takes it."""
    presence: bytes
    """As :func:`swarmtui.peer.presence.open_presence` takes it; empty: none."""


def take_apart(data: bytes) -> Parts:
    """Split a frame from the network.

    Raises:
        InvalidFrame: it is too large, isn't MessagePack, or isn't a frame.
    """
    if len(data) > MAX_FRAME_BYTES:
        raise InvalidFrame("frame too large")
    try:
        frame = _frame.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise InvalidFrame("undecodable frame") from error
    if not frame.ops and not bytes(frame.presence):
        raise InvalidFrame("empty frame")
    return Parts(tuple(bytes(raw) for raw in frame.ops), bytes(frame.presence))


def put_together(ops: Iterable[Op] = (), presence: bytes = b"") -> bytes:
    """Make a frame; the caller keeps to its size (see :func:`bundles`)."""
    frame: dict[str, object] = {}
    raws = [msgspec.Raw(to_wire(op)) for op in ops]
    if raws:
        frame["ops"] = raws
    if presence:
        frame["presence"] = msgspec.Raw(presence)
    return msgspec.msgpack.encode(frame)


def bundles(ops: Iterable[Op], limit: int = MAX_FRAME_BYTES) -> Iterator[list[Op]]:
    """Cut ops, in their order, into lists that each fit a frame (or an answer) of `limit` bytes."""
    bundle: list[Op] = []
    size = _ENVELOPE
    for op in ops:
        wire = wire_size(op)
        if bundle and size + wire > limit:
            yield bundle
            bundle, size = [], _ENVELOPE
        bundle.append(op)
        size += wire
    if bundle:
        yield bundle


def wire_size(op: Op) -> int:
    """Bytes that an op takes in a frame, at most."""
    return len(op.payload) + len(op.signature) + 16


def peek(wire: bytes) -> tuple[bytes, bytes, PeerId]:
    """Read payload, signature and *claimed* author of an op without checking anything.

    Raises:
        InvalidOp: it isn't an op at all.
    """
    try:
        payload, signature = _signed.decode(wire)
        return payload, signature, _author.decode(payload).author
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise InvalidOp("undecodable op") from error


class Opener:
    """Opens ops and remembers the latest, up to a number of bytes. Only ops that are valid are remembered."""

    def __init__(self, capacity: int = _REMEMBERED, opened: Callable[[bytes], Op] = open_op) -> None:
        self._capacity = capacity
        self._open = opened
        self._size = 0
        self._ops: OrderedDict[bytes, Op] = OrderedDict()
        self.checked = 0
        """Signatures that were checked."""

    def __call__(self, wire: bytes) -> Op:
        """Check and decode an op.

        Raises:
            InvalidOp: see :func:`swarmtui.plan.envelope.open_op`.
        """
        op = self._ops.get(wire)
        if op is not None:
            self._ops.move_to_end(wire)
            return op
        self.checked += 1
        op = self._open(wire)
        self._ops[wire] = op
        self._size += len(wire)
        while self._size > self._capacity:
            self._size -= len(self._ops.popitem(last=False)[0])
        return op


SHARED = Opener()
"""The opener of this process: what one local peer has checked its fellows needn't check again."""
