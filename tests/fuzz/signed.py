"""Ops and presences: opened or refused, and taken exactly when the page says so."""

from __future__ import annotations

from swarmtui.peer.frames import InvalidFrame, take_apart
from swarmtui.peer.presence import InvalidPresence, open_presence
from swarmtui.plan.envelope import open_op, to_wire
from swarmtui.plan.ops import InvalidOp, Op

from . import by_the_page
from .dice import Dice
from .material import frame, op_wire, presence_wire


def ops(dice: Dice, inputs: int) -> None:
    for _ in range(inputs):
        check_op(op_wire(dice))


def check_op(wire: bytes) -> Op | None:
    """Open an op; what the page says must be the same."""
    try:
        op = open_op(wire)
    except InvalidOp:
        op = None
    try:
        by_the_page.check(wire)
        good = True
    except (by_the_page.Wrong, RecursionError):
        good = False
    assert good == (op is not None), f"the page {'takes' if good else 'refuses'} it: {wire.hex()}"
    if op is not None:
        again = open_op(to_wire(op))
        assert (again.id, again.body) == (op.id, op.body)
    return op


def presences(dice: Dice, inputs: int) -> None:
    for _ in range(inputs):
        check_presence(presence_wire(dice))


def check_presence(wire: bytes) -> None:
    """Open a presence; what the page says must be the same."""
    try:
        found = open_presence(wire)
    except InvalidPresence:
        found = None
    try:
        by_the_page.check_presence(wire)
        good = True
    except (by_the_page.Wrong, RecursionError):
        good = False
    assert good == (found is not None), f"the page {'takes' if good else 'refuses'} it: {wire.hex()}"
    if found is None:
        return
    for name in ("peer", "role", "name", "model", "machine", "doing", "subject"):
        getattr(found, name).encode()


def frames(dice: Dice, inputs: int) -> None:
    for _ in range(inputs):
        check_frame(frame(dice))


def check_frame(data: bytes) -> None:
    """A frame comes apart or is refused, and its parts likewise."""
    try:
        parts = take_apart(data)
    except InvalidFrame:
        return
    for wire in parts.ops:
        check_op(wire)
    if parts.presence:
        check_presence(parts.presence)
