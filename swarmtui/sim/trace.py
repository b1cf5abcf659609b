"""The trace of a run: one hash over everything that happened, and readable lines for whoever looks at one seed."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable

import msgspec
import trio

from swarmtui.peer.frames import take_apart
from swarmtui.peer.presence import Presence
from swarmtui.plan.ops import Op, Steer

_signed = msgspec.msgpack.Decoder(tuple[bytes, bytes])
_presence = msgspec.msgpack.Decoder(Presence)


class Trace:
    """Hashes every frame, request and event with its virtual time.

    Args:
        show: called with a line per event; None: only the hash.
    """

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self._hash = hashlib.sha256()
        self._show = show
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
            data: hashed, not shown.
            detail: shown, not hashed.
        """
        now = trio.current_time()
        self._hash.update(struct.pack(">dii", now, member, len(data)) + what.encode() + data)
        self.events += 1
        if self._show is not None:
            self._show(f"{now:9.3f} {'' if member < 0 else member:>3} {what} {detail}".rstrip())

    def frame(self, member: int, data: bytes, opened: Callable[[bytes], Op]) -> None:
        """Add a published frame."""
        self.note(member, "says", data, detail=_told(data, opened) if self._show else "")

    def fault(self, what: object) -> None:
        """Add a fault of the scenario."""
        self.note(-1, "fault", detail=repr(what))


def _told(data: bytes, opened: Callable[[bytes], Op]) -> str:
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
