"""Frames, taken apart and put together."""

from __future__ import annotations

import msgspec
import pytest

from swarmtui.peer.frames import InvalidFrame, Opener, bundles, peek, put_together, take_apart
from swarmtui.peer.network import MAX_FRAME_BYTES
from swarmtui.plan.envelope import open_op, to_wire
from swarmtui.plan.ops import Goal, InvalidOp

from .world import goal, identity, op

OPS = [op(identity(1), b"", 0, Goal(title=f"goal {n}", detail="x" * 3000)) for n in range(100)]


def test_ops_and_presence_travel_together() -> None:
    parts = take_apart(put_together(OPS[:3], b"\x92\xc4\x01a\xc4\x01b"))
    assert [open_op(wire).id for wire in parts.ops] == [o.id for o in OPS[:3]]
    assert parts.presence == b"\x92\xc4\x01a\xc4\x01b"


def test_keys_of_a_later_version_are_ignored() -> None:
    frame = msgspec.msgpack.encode({"ops": [msgspec.Raw(to_wire(OPS[0]))], "weather": {"x": 1.5}})
    assert len(take_apart(frame).ops) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"\x90",
        b"garbage",
        b"\xc1" * 50,
        b"\x81\xa3ops\x91" + b"\x91" * 100_000 + b"\xc0",
        b"\x81\xa3ops\xdd\xff\xff\xff\xff",
        b"\x81\xa3ops\xc0",
        b"\x81\xa3\xff\xfe\xfd\xc0",
        put_together(OPS[:1]) + b"rest",
        b"x" * (MAX_FRAME_BYTES + 1),
    ],
)
def test_garbage_is_invalid(data: bytes) -> None:
    with pytest.raises(InvalidFrame):
        take_apart(data)


def test_bundles_keep_the_order_and_fit_a_frame() -> None:
    cut = list(bundles(OPS))
    assert [o.id for bundle in cut for o in bundle] == [o.id for o in OPS]
    assert 1 < len(cut) < 5
    assert all(len(put_together(bundle)) <= MAX_FRAME_BYTES for bundle in cut)


def test_an_op_is_checked_once_but_never_forged() -> None:
    opener = Opener()
    wire = to_wire(OPS[0])
    assert opener(wire) is opener(wire)
    assert opener.checked == 1
    payload, _, author = peek(wire)
    assert author == OPS[0].author
    with pytest.raises(InvalidOp):
        opener(msgspec.msgpack.encode((payload, bytes(64))))


def test_the_memory_of_checked_ops_is_bounded() -> None:
    opener = Opener(capacity=10_000)
    for one in OPS:
        opener(to_wire(one))
    assert opener._size <= 10_000


def test_goals_differ() -> None:
    assert goal("a") != goal("b")
