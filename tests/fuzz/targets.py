"""What is fuzzed: each target feeds a number of inputs and raises when something is wrong."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from . import files, peers, plans, signed, wires
from .dice import Dice


class Target(msgspec.Struct, frozen=True):
    """One reader of what it didn't write."""

    feed: Callable[[Dice, int], None]
    """Feeds so many inputs, chosen by the dice."""
    share: float
    """Its part of all inputs of a long run, in per cent; those that start hosts or write files are slow."""
    batch: int
    """Inputs at once in a long run."""
    examples: int
    """Examples of the short run."""
    each: int
    """Inputs of one of them."""
    octets: int
    """Bytes that one of them is chosen by."""


TARGETS = {
    "op": Target(signed.ops, 25, 100, 500, 4, 400),
    "presence": Target(signed.presences, 8, 100, 200, 5, 400),
    "frame": Target(signed.frames, 8, 100, 100, 5, 800),
    "peer: frames": Target(peers.frames, 13, 200, 60, 20, 2_500),
    "peer: requests": Target(peers.requests, 10, 200, 50, 20, 2_500),
    "peer: answers": Target(peers.answers, 8, 60, 30, 20, 2_500),
    "plan": Target(plans.histories, 10, 400, 60, 40, 1_500),
    "journal": Target(files.journals, 0.5, 20, 50, 2, 200),
    "settings": Target(files.settings, 2, 50, 40, 5, 200),
    "GGUF header": Target(files.headers, 4, 100, 60, 10, 800),
    "keys": Target(files.keys, 1, 20, 40, 3, 200),
    "meeting files": Target(files.meetings, 1.4, 50, 40, 5, 300),
    "engine's pipe": Target(files.pipes, 3, 100, 60, 10, 600),
    "announcements": Target(wires.announcements, 2, 100, 30, 10, 400),
    "yamux": Target(wires.muxers, 3, 100, 40, 20, 1_500),
    "libp2p: streams": Target(wires.gossip, 1, 500, 3, 60, 6_000),
    "libp2p: sockets": Target(wires.sockets, 0.1, 50, 2, 15, 2_000),
}
