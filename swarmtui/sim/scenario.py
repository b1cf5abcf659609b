"""What happens in one simulated run, as plain data: who is there, what they plan, what goes wrong and when.

A scenario holds no chance of its own: :mod:`swarmtui.sim.dice` draws one from a seed, and tests write their own. Times
are virtual seconds from the start of the run.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from swarmtui.plan.ops import Policy


class Data(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a scenario."""


class Member(Data, frozen=True):
    """One peer. Members are named by their place in the scenario's list."""

    role: str
    """operator, decomposer, scorer, executor, observer (a silent peer), idle (a peer without an agent) or hostile."""
    joins_s: float = 0.0
    skew_ms: int = 0
    """How wrong its clock is until the healing."""
    slow: float = 1.0
    """How many times slower than usual its model is until the healing."""
    fails: float = 0.0
    """Share of its model's answers that fail until the healing."""
    tricks: tuple[str, ...] = ()
    """What a hostile one does (see :mod:`swarmtui.sim.hostile`)."""
    every_s: float = 3.0
    """How often it does so."""


class Weather(Data, frozen=True, tag="weather"):
    """What the network does to all traffic, from `at` to `until`."""

    at: float
    until: float
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay: tuple[float, float] = (0.001, 0.02)


class Cut(Data, frozen=True, tag="cut"):
    """A partition, from `at` to `until`."""

    at: float
    until: float
    shape: str
    """halves; one-way (the second half isn't heard by the first); bridge (one member sees both halves); islands (two
    or three, drawn anew every `turn_s`)."""
    turn_s: float = 15.0


class Said(Data, frozen=True):
    """A moment in a member's life: when it says its `nth` op of a kind (0: the first)."""

    kind: str
    nth: int = 0
    point: str = "published"
    """before (it hasn't said it yet), journalled (on disk, not published) or published."""
    then_s: float = 0.0
    """So long after that moment."""


class Crash(Data, frozen=True, tag="crash"):
    """SIGKILL."""

    member: int
    when: float | Said
    back_s: float | None = None
    """Starts again after so long, at the healing at the latest; None: never."""
    disk: str = "kept"
    """What becomes of its journal: kept, lost, torn (damaged: set aside), stale (the last third is gone)."""


class Stop(Data, frozen=True, tag="stop"):
    """SIGSTOP, and SIGCONT after `for_s`: no task of the peer runs, what it's sent waits, its timers are late."""

    member: int
    when: float | Said
    for_s: float


class Leave(Data, frozen=True, tag="leave"):
    """The agent goes politely, for good."""

    member: int
    at: float


class Jump(Data, frozen=True, tag="jump"):
    """A member's clock jumps."""

    member: int
    at: float
    ms: int


class Steering(Data, frozen=True, tag="steering"):
    """The operator decides something: policy, pick, veto, retry, note or pause (which it takes back
    after the healing)."""

    at: float
    act: str


Fault: TypeAlias = Weather | Cut | Crash | Stop | Leave | Jump | Steering


class Scenario(Data, frozen=True):
    """One run."""

    seed: int
    members: tuple[Member, ...]
    policy: Policy
    goals: tuple[float, ...] = (1.0,)
    """When the operator gives a goal."""
    faults: tuple[Fault, ...] = ()
    heal_s: float = 60.0
    """From here on: no loss, no partition, clocks and models right, everybody who comes back is back."""
    hostile_stay: bool = False
    """Hostile members go on until the plans are done."""
    degree: int = 0
    """Neighbours of each member, about: those it asks and is asked by. What's published reaches all, as gossip does. 0:
    all are neighbours."""
    tokens_per_second: float = 60.0
    finish_s: float = 1_800.0
    """Every plan has to be done within so long after the healing …"""
    settle_s: float = 400.0
    """… and everybody has to hold the same within so long after that."""

    @property
    def ahead_s(self) -> float:
        """How far a clock was ahead, at most: what was said by it is held for so long by the others."""
        jumps: dict[int, int] = {}
        for fault in self.faults:
            if isinstance(fault, Jump):
                jumps[fault.member] = jumps.get(fault.member, 0) + max(0, fault.ms)
        most = [member.skew_ms + jumps.get(number, 0) for number, member in enumerate(self.members)]
        return max(0, *most) / 1000

    def of(self, role: str) -> list[int]:
        """The members of a role."""
        return [number for number, member in enumerate(self.members) if member.role == role]
