"""Spoils what is good: one change to a tree of values, or to a string of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .dice import Dice
from .pack import Pairs, Raw

EDGES = [
    *(
        0,
        1,
        -1,
        2,
        15,
        16,
        17,
        32,
        33,
        100,
        101,
        127,
        128,
        255,
        256,
        1_000,
        1_001,
        4_096,
        65_535,
        65_536,
        86_400,
        86_401,
    ),
    *(
        -32,
        -33,
        -129,
        -32_769,
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**32,
        2**53 - 1,
        2**53,
        2**63 - 1,
        2**63,
        2**64 - 1,
        -(2**63),
    ),
]
SIZES = [0, 1, 31, 32, 33, 39, 40, 41, 79, 80, 81, 128, 129, 199, 200, 201, 3_999, 4_000, 4_001]
LARGE = [31_999, 32_000, 32_001, 65_300, 70_000]
FORBIDDEN = [
    *(b"\xc0", b"\xc1", b"\xcb\x3f\xf8\0\0\0\0\0\0", b"\xcb\x7f\xf8\0\0\0\0\0\0", b"\xcb\x7f\xf0\0\0\0\0\0\0"),
    *(
        b"\xcb\x3f\xf0\0\0\0\0\0\0",
        b"\xca\x3f\x80\0\0",
        b"\xd4\x01x",
        b"\xd6\xff\0\0\0\0",
        b"\xc7\x00\x05",
        b"\xc9\xff\xff\xff\xff\x01",
    ),
    *(b"\xa3\xed\xa0\x80", b"\xa2\xff\xfe", b"\xa2\xc0\x80", b"\xa4\xf4\x90\x80\x80", b"\xa1\xe2"),
    *(b"\x81\x01\x01", b"\x81\xc4\x01a\x01", b"\x82\xa1a\x01\xa1a\x01", b"\x82\xa1a\x01\xd9\x01a\x02", b"\x81\x90\x01"),
    *(
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xde\xff\xff\xa1a",
    ),
    *(
        b"\x91" * 15 + b"\x01",
        b"\x91" * 17 + b"\x01",
        b"\x81\xa1a" * 17 + b"\x01",
        b"\x91" * 2_000 + b"\x01",
        b"\x91" * 60_000,
    ),
    *(b"\xdc\x0f\xf0" + b"\x01" * 4_080, b"\xdc\x10\x01" + b"\x01" * 4_097, b"\x81\xa1a" * 30_000),
]
WORDS = [
    "kind",
    "act",
    "v",
    "plan",
    "author",
    "task",
    "steps",
    "proposal",
    "claim",
    "policy",
    "more",
    "",
    "ops",
    "presence",
]


def spoil(dice: Dice, tree: Any) -> Any:
    """The tree with one change somewhere in it. The tree given stays as it is."""
    sites = _sites(tree)
    at = dice.choose(sites)
    return _rebuilt(tree, at, lambda old: _spoilt(dice, old, tree, sites))


def _sites(tree: Any, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """The place of every value: positions in maps and lists, from the top down."""
    found = [path]
    for index, child in enumerate(_children(tree)):
        found += _sites(child, (*path, index))
    return found


def _children(value: Any) -> list[Any]:
    if isinstance(value, Pairs):
        return [child for _, child in value]
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _rebuilt(tree: Any, path: tuple[int, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(tree)
    index, rest = path[0], path[1:]
    if isinstance(tree, Pairs | dict):
        pairs = Pairs(tree if isinstance(tree, Pairs) else tree.items())
        pairs[index] = (pairs[index][0], _rebuilt(pairs[index][1], rest, change))
        return pairs
    copy = list(tree)
    copy[index] = _rebuilt(copy[index], rest, change)
    return copy


def _at(tree: Any, path: tuple[int, ...]) -> Any:
    for index in path:
        tree = _children(tree)[index]
    return tree


def _spoilt(dice: Dice, old: Any, tree: Any, sites: list[tuple[int, ...]]) -> Any:
    match dice.below(10):
        case 0:
            return _anything(dice)
        case 1:
            return Raw(dice.choose(FORBIDDEN))
        case 2:
            return _at(tree, dice.choose(sites))  # another part of the same thing
        case 3 if isinstance(old, bool):
            return int(old)
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        near = dice.choose([old + 1, old - 1, -old, old << 1, old << 16, dice.choose(EDGES)])
        return max(-(1 << 63), min((1 << 64) - 1, near))
    if isinstance(old, str):
        return _text(dice, old)
    if isinstance(old, bytes):
        return dice.choose([old[:-1], old + b"\0", old + old, b"", old.hex(), spoil_bytes(dice, old), dice.octets(32)])
    if isinstance(old, Pairs | dict):
        return _map(dice, Pairs(old if isinstance(old, Pairs) else old.items()))
    if isinstance(old, list):
        return _list(dice, old)
    return _anything(dice)


def _anything(dice: Dice) -> Any:
    size = dice.choose(SIZES if dice.chance(80) else LARGE)
    return dice.choose(
        [
            dice.choose(EDGES),
            "x" * size,
            "é" * size,
            b"x" * size,
            True,
            [],
            {},
            [[[]]],
            {"a": {"b": 1}},
            ["x"] * (size % 300),
            None,
            1.5,
        ]
    )


def _text(dice: Dice, old: str) -> Any:
    size = dice.choose(SIZES if dice.chance(85) else LARGE)
    return dice.choose(
        [
            *(
                "",
                old[:-1],
                old + "x",
                old + old,
                old.upper(),
                old + " ",
                " " + old,
                old.encode("utf-8", "replace"),
                "\ud800",
                "\0",
                "x" * size,
            ),
            *(" " * size, "🗾" * size, " " * 3, "unknown", "goal", "steer", "policy", "1" * size),
        ]
    )


def _map(dice: Dice, pairs: Pairs) -> Any:
    at = dice.below(len(pairs)) if pairs else 0
    match dice.below(8):
        case 0:
            del pairs[at : at + 1]
        case 1:
            pairs += pairs[at : at + 1]
        case 2:
            pairs.insert(at, (dice.choose(WORDS), _anything(dice)))
        case 3:
            pairs.insert(at, (dice.choose([7, b"kind", None, True, [], Raw(b"\xa2\xff\xfe"), "kind\0"]), 1))
        case 4 if pairs:
            pairs[at] = (dice.choose(WORDS), pairs[at][1])
        case 5:
            pairs.reverse()
        case 6:
            return [value for _, value in pairs]
        case 7:
            pairs += [(str(n), n) for n in range(dice.choose([1, 20, 3_000]))]
    return pairs


def _list(dice: Dice, old: list[Any]) -> Any:
    at = dice.below(len(old)) if old else 0
    match dice.below(7):
        case 0:
            return old[:at] + old[at + 1 :]
        case 1:
            return old + old[at : at + 1]
        case 2:
            return (old * 20)[: dice.choose([1, 15, 16, 17, 33])]
        case 3:
            return []
        case 4:
            return old[::-1]
        case 5:
            return {str(n): value for n, value in enumerate(old)}
    return [*old[:at], _anything(dice), *old[at:]]


def spoil_bytes(dice: Dice, data: bytes) -> bytes:
    """Bytes with a few changes: flips, cuts, copies, insertions."""
    out = bytearray(data)
    for _ in range(dice.choose([1, 1, 2, 4])):
        at = dice.below(len(out) + 1)
        match dice.below(8):
            case 0 | 1 if at < len(out):
                out[at] ^= 1 << dice.below(8)
            case 2 if at < len(out):
                out[at] = dice.below(256)
            case 3:
                del out[at:]
            case 4:
                del out[at : at + 1 + dice.below(8)]
            case 5:
                out[at:at] = dice.octets(1 + dice.below(8))
            case 6:
                end = dice.below(len(out) + 1)
                out[at:at] = out[min(at, end) : max(at, end)][:5_000]
            case _:
                out += dice.octets(1 + dice.below(4))
    return bytes(out)
