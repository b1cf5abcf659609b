"""Short names for agents. A name is only for people: peers know each other by their keys."""

from __future__ import annotations

from collections.abc import Container

from swarmtui.plan.ops import PeerId

NAMES = [
    "ada",
    "bob",
    "cleo",
    "dora",
    "eva",
    "finn",
    "gus",
    "hana",
    "ivo",
    "june",
    "kofi",
    "lena",
    "milo",
    "nora",
    "otto",
    "pia",
    "quin",
    "rosa",
    "sven",
    "tara",
    "ugo",
    "vera",
    "wim",
    "xena",
    "yuri",
    "zoe",
]


def pick(taken: Container[str]) -> str:
    """The first name that isn't taken: ada … zoe, then ada2 …"""
    lap = 1
    while True:
        for name in NAMES:
            candidate = name if lap == 1 else f"{name}{lap}"
            if candidate not in taken:
                return candidate
        lap += 1


def short(peer: PeerId) -> str:
    """A peer whose name was never heard: the tail of its id, where ids differ."""
    return f"…{peer[-6:]}"
