"""What MessagePack an op may be made of: maps with text keys, lists, integers, booleans, text and byte strings.

Bodies of a kind that we don't know, and fields that we don't know, are passed on unread. This walk makes sure that they
hold nothing that another implementation, or a later version, would read differently or couldn't read at all.
"""

from __future__ import annotations

from .ops import InvalidOp

MAX_NESTING = 16
"""Levels of maps and lists in each other."""
MAX_ELEMENTS = 4_096
"""Values in one op, keys not counted. The largest body that we know has 1,100 or so."""

# First byte -> (bytes of the length field, is text). Fixed-length forms are treated apart.
_STRINGS = {0xC4: (1, False), 0xC5: (2, False), 0xC6: (4, False), 0xD9: (1, True), 0xDA: (2, True), 0xDB: (4, True)}
_INTEGERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_LISTS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}
_BOOLEANS = (0xC2, 0xC3)


class _Level:
    """A map or list whose elements are being read."""

    __slots__ = ("keys", "left")

    def __init__(self, length: int, is_map: bool) -> None:
        self.left = length
        self.keys: set[bytes] | None = set() if is_map else None


def check_plain(data: bytes) -> None:
    """Check that data is exactly one value of the allowed kinds.

    Raises:
        InvalidOp: naming what else was found.
    """
    try:
        end = _walk(data)
    except IndexError:
        raise InvalidOp("the payload ends too early") from None
    if end != len(data):
        raise InvalidOp("bytes follow the payload")


def _walk(data: bytes) -> int:
    """Walk one value without recursion; the offset behind it."""
    at, elements = 0, 0
    levels: list[_Level] = []
    while True:
        if levels and levels[-1].keys is not None:
            at = _key(data, at, levels[-1].keys)
        elements += 1
        if elements > MAX_ELEMENTS:
            raise InvalidOp(f"more than {MAX_ELEMENTS} values in one op")
        at, level = _value(data, at)
        if levels:
            levels[-1].left -= 1
        if level is not None:
            levels.append(level)
            if len(levels) > MAX_NESTING:
                raise InvalidOp(f"nested deeper than {MAX_NESTING}")
        while levels and levels[-1].left == 0:
            levels.pop()
        if not levels:
            return at


def _key(data: bytes, at: int, seen: set[bytes]) -> int:
    first = data[at]
    if not (0xA0 <= first <= 0xBF or first in (0xD9, 0xDA, 0xDB)):
        raise InvalidOp("a map has a key that isn't text")
    end, _ = _value(data, at)
    # Compared by their bytes behind the length field, so that two encodings of one key are the same key.
    skip = 1 if first <= 0xBF else 1 + _STRINGS[first][0]
    key = data[at + skip : end]
    if key in seen:
        raise InvalidOp("a map has a key twice")
    seen.add(key)
    return end


def _value(data: bytes, at: int) -> tuple[int, _Level | None]:
    """Read one value's head, and its bytes if it's a string: (offset behind it, the level that it opens)."""
    first = data[at]
    at += 1
    if first <= 0x7F or first >= 0xE0 or first in _BOOLEANS:
        return at, None
    if first <= 0x8F:
        return at, _Level(first & 0x0F, is_map=True)
    if first <= 0x9F:
        return at, _Level(first & 0x0F, is_map=False)
    if first <= 0xBF:
        return _string(data, at, first & 0x1F, text=True), None
    if first in _STRINGS:
        width, text = _STRINGS[first]
        return _string(data, at + width, _length(data, at, width), text), None
    if first in _INTEGERS:
        return _string(data, at, _INTEGERS[first], text=False), None
    if first in _LISTS or first in _MAPS:
        width = _LISTS.get(first) or _MAPS[first]
        return at + width, _Level(_length(data, at, width), is_map=first in _MAPS)
    raise InvalidOp("floats, nil and extensions have no place in an op")


def _length(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + width], "big")


def _string(data: bytes, at: int, length: int, text: bool) -> int:
    end = at + length
    if end > len(data):
        raise IndexError
    if text:
        try:
            data[at:end].decode()
        except UnicodeDecodeError:
            raise InvalidOp("a text isn't UTF-8") from None
    return end
