"""Checks what comes from the topic, before and after the network passes it on."""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from swarmtui.plan.ops import InvalidOp, Op, PeerId

from .frames import InvalidFrame, take_apart
from .network import Frame, Network
from .presence import InvalidPresence, Presence, Presences, open_presence
from .store import Store

log = logging.getLogger(__name__)


class Intake:
    """Takes frames apart and hands on what is good.

    Args:
        heard: called with each presence that was accepted.
    """

    def __init__(self, store: Store, network: Network, presences: Presences, heard: Callable[[Presence], None]) -> None:
        self._store = store
        self._counters = store.counters
        self._network = network
        self._presences = presences
        self._heard = heard

    def valid(self, data: bytes) -> bool | None:
        """The network's validator: False for what no honest neighbour passes on, None for what we can't look at now."""
        try:
            parts = take_apart(data)
            opened = [self._store.open(wire, sparing=True) for wire in parts.ops]
            if parts.presence:
                open_presence(parts.presence)
        except (InvalidFrame, InvalidOp, InvalidPresence) as error:
            self._counters.invalid.count(str(error))
            return False
        except Exception:
            self._counters.errors += 1
            log.exception("%s: validator", self._store.me)
            return False
        if None in opened:
            self._counters.refused.count("author's rate")
            return None
        return True

    def frame(self, frame: Frame) -> None:
        """Take a frame that the network delivered."""
        self._counters.frames_in += 1
        try:
            parts = take_apart(frame.data)
        except InvalidFrame as error:
            self._invalid(str(error), frame.source)
            return
        opened = [op for wire in parts.ops if (op := self._open(wire, frame.source)) is not None]
        self._store.take(opened, limited=True)
        self._store.note_told(opened)
        if parts.presence:
            self._hear(parts.presence, frame.source)

    def _open(self, wire: bytes, source: PeerId) -> Op | None:
        try:
            return self._store.open(wire, sparing=True)
        except InvalidOp as error:
            self._invalid(str(error), source)
            return None

    def _hear(self, wire: bytes, source: PeerId) -> None:
        try:
            presence = open_presence(wire)
        except InvalidPresence as error:
            self._invalid(str(error), source)
            return
        if presence.peer == self._store.me:
            return
        refusal = self._presences.hear(presence, trio.current_time(), self._network.neighbours)
        if refusal:
            self._counters.refused.count(refusal)
            return
        self._counters.presences_in += 1
        self._heard(presence)

    def _invalid(self, reason: str, source: PeerId) -> None:
        self._counters.invalid.count(reason)
        if source:
            self._counters.invalid_by_neighbour.count(source)
            self._network.strike(source, reason)
