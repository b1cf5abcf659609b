"""The trace of a run: one hash over everything that happened, and what is told of it to whoever looks at one seed."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import Protocol

import msgspec
import trio

from swarmtui.peer.frames import take_apart
from swarmtui.peer.presence import Presence
from swarmtui.plan.ops import Op, Steer

_signed = msgspec.msgpack.Decoder(tuple[bytes, bytes])
_presence = msgspec.msgpack.Decoder(Presence)
Opened = Callable[[bytes], Op]


class Teller(Protocol):
    """Tells a person of a run while it goes on. Times are virtual seconds; members go by their number, nobody by -1."""

    def note(self, at: float, member: int, what: str, detail: str) -> None:
        """Something happened to a member."""

    def frame(self, at: float, member: int, data: bytes, opened: Opened) -> None:
        """A member published a frame."""

    def fault(self, at: float, what: object) -> None:
        """Something of the scenario goes wrong from now on."""


class Trace:
    """Hashes every frame, request and event with its virtual time.

    Args:
        teller: told of every event; None: only the hash.
    """

    def __init__(self, teller: Teller | None = None) -> None:
        self._hash = hashlib.sha256()
        self._teller = teller
        self.events = 0

    @property
    def digest(self) -> str:
        """The hash so far."""
        return self._hash.hexdigest()

    def note(self, member: int, what: str, data: bytes = b"", *, detail: str = "") -> None:
        """Add an event.

        Args:
            member: who acts; -1: nobody.
            what: a word or two.
            data: hashed, not told.
            detail: told, not hashed.
        """
        self._add(member, what, data)
        if self._teller is not None:
            self._teller.note(trio.current_time(), member, what, detail)

    def frame(self, member: int, data: bytes, opened: Opened, to: int = -1) -> None:
        """Add a frame that a member published, or told one other alone."""
        self._add(member, "says" if to < 0 else f"whispers to {to}", data)
        if self._teller is not None:
            self._teller.frame(trio.current_time(), member, data, opened)

    def fault(self, what: object) -> None:
        """Add a fault of the scenario."""
        self._add(-1, "fault", b"")
        if self._teller is not None:
            self._teller.fault(trio.current_time(), what)

    def _add(self, member: int, what: str, data: bytes) -> None:
        self._hash.update(struct.pack(">dii", trio.current_time(), member, len(data)) + what.encode() + data)
        self.events += 1


class Everything:
    """Tells every event in a line.

    Args:
        show: called with each line.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def note(self, at: float, member: int, what: str, detail: str) -> None:
        self._show(f"{at:9.3f} {'' if member < 0 else member:>3} {what} {detail}".rstrip())

    def frame(self, at: float, member: int, data: bytes, opened: Opened) -> None:
        self.note(at, member, "says", _told(data, opened))

    def fault(self, at: float, what: object) -> None:
        self.note(at, -1, "fault", repr(what))


def _told(data: bytes, opened: Opened) -> str:
    """What a frame says, in a line."""
    try:
        parts = take_apart(data)
        words = [word_for(opened(wire)) for wire in parts.ops]
        if parts.presence:
            presence = _presence.decode(_signed.decode(parts.presence)[0])
            doing = f"{presence.doing} “{presence.subject}”" if presence.doing else "-"
            left = " leaving" if presence.leaving else ""
            words.append(f"presence {presence.role} {doing} {presence.ops} ops {presence.fingerprint.hex()[:8]}{left}")
    except Exception as error:
        return f"{len(data)} bytes ({error})"
    return "; ".join(words)


def word_for(op: Op) -> str:
    """An op in a few words."""
    body = op.body
    kind = type(body.act if isinstance(body, Steer) else body).__name__.lower()
    about = [value.hex()[:8] for value in (getattr(body, key, b"") for key in ("task", "proposal", "claim")) if value]
    more = "" if getattr(body, "approve", None) is None else (" yes" if getattr(body, "approve", False) else " no")
    prior = getattr(body, "prior", b"")
    follows = f" after {prior.hex()[:8]}" if prior else ""
    return f"{kind} {op.id.hex()[:8]} {' '.join(about)}{more}{follows}".rstrip()
