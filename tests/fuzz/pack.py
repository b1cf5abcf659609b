"""MessagePack that may be wrong: packs what no library would."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from .dice import Dice


class Raw:
    """Bytes that stand where a value should."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"Raw({self.data[:40]!r})"


class Pairs(list[tuple[Any, Any]]):
    """A map as a list of pairs: keys may be of any kind and come twice."""


def pack(value: Any, dice: Dice | None = None) -> bytes:
    """MessagePack of plain values, `Raw` and `Pairs`. With dice, now and then in a longer form than needed."""
    out = bytearray()
    _pack(value, out, dice)
    return bytes(out)


def _pack(value: Any, out: bytearray, dice: Dice | None) -> None:
    # No recursion: what is packed may be nested deeper than Python likes.
    stack = [value]
    while stack:
        item = stack.pop()
        odd = dice is not None and dice.below(64) == 63
        if isinstance(item, Raw):
            out += item.data
        elif isinstance(item, bool) or item is None or isinstance(item, float):
            out += msgspec.msgpack.encode(item)
        elif isinstance(item, int):
            out += _integer(item, odd)
        elif isinstance(item, str):
            data = item.encode("utf-8", "surrogatepass")
            out += _head(len(data), 0xA0, 32, (0xD9, 0xDA, 0xDB), odd) + data
        elif isinstance(item, bytes):
            out += _head(len(item), 0, 0, (0xC4, 0xC5, 0xC6), odd) + item
        elif isinstance(item, Pairs | dict):
            pairs = item if isinstance(item, Pairs) else list(item.items())
            out += _head(len(pairs), 0x80, 16, (None, 0xDE, 0xDF), odd)
            stack += [part for pair in reversed(pairs) for part in reversed(pair)]
        else:
            out += _head(len(item), 0x90, 16, (None, 0xDC, 0xDD), odd)
            stack += list(reversed(item))


def _head(length: int, fixed: int, below: int, codes: tuple[int | None, int, int], odd: bool) -> bytes:
    if odd:
        return bytes((codes[2],)) + struct.pack(">I", length)
    if length < below:
        return bytes((fixed | length,))
    if codes[0] is not None and length < 256:
        return bytes((codes[0], length))
    if length < 65_536:
        return bytes((codes[1],)) + struct.pack(">H", length)
    return bytes((codes[2],)) + struct.pack(">I", length)


def _integer(value: int, odd: bool) -> bytes:
    if odd:
        return b"\xcf" + struct.pack(">Q", value) if value >= 0 else b"\xd3" + struct.pack(">q", value)
    return msgspec.msgpack.encode(value)
