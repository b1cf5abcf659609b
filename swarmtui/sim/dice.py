"""Draws a scenario from a seed: who is there, what they plan, what goes wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection

from swarmtui.plan.ops import Policy

from .hostile import TRICKS
from .member import identity_of
from .scenario import Crash, Cut, Fault, Jump, Leave, Member, Said, Scenario, Steering, Stop, Weather

KINDS = (
    "loss",
    "duplicate",
    "reorder",
    "delay",
    "partition",
    "crash",
    "stop",
    "clock",
    "model",
    "join",
    "hostile",
    "steer",
)
"""Kinds of faults."""
SAID = {
    "operator": ("goal",),
    "decomposer": ("proposal",),
    "scorer": ("vote",),
    "executor": ("claim", "claim", "result"),
}
HOUR_MS = 3_600_000


def scenario(seed: int, peers: tuple[int, int] = (5, 12), kinds: Collection[str] | None = None) -> Scenario:
    """Draw a scenario.

    Args:
        seed: the same gives the same.
        peers: fewest and most members.
        kinds: faults to draw from; None: of all kinds, one or several, sometimes none.
    """
    rng = random.Random(f"scenario/{seed}")
    count = rng.randint(*peers)
    if kinds is None:
        how_many = rng.choice((0, 1, 1, 2, 2, 3, 4, len(KINDS)))
        chosen = frozenset(rng.sample(KINDS, how_many))
    else:
        chosen = frozenset(kinds)
    return _Draw(seed, count, chosen, rng).scenario()


THIN = {"operator": 1, "decomposer": 3, "scorer": 7, "executor": 12, "observer": 5}
HOSTILE_SHARE = 0.2


def crowd(seed: int, peers: int) -> Scenario:
    """Draw a large swarm with few agents: most peers only hold and pass on, and a fifth is hostile.

    Hostile members are as busy all together as a few of them would be in a small swarm; floods are left to those, as
    here each frame is a thousand deliveries. Scorers are a closed list, or two hundred hostile ones would decide.
    """
    rng = random.Random(f"crowd/{seed}")
    hostile = int(peers * HOSTILE_SHARE)
    roles = [role for role, count in THIN.items() for _ in range(count)]
    roles += ["hostile"] * hostile + ["idle"] * (peers - hostile - len(roles))
    tricks = sorted(set(TRICKS) - {"flood", "replay", "found"})
    members = []
    for role in roles:
        joins = round(rng.uniform(0, 0.5) if role == "operator" or rng.random() < 0.9 else rng.uniform(1, 40), 2)
        played = tuple(sorted(rng.sample(tricks, 4))) if role == "hostile" else ()
        members.append(Member(role=role, joins_s=joins, tricks=played, every_s=max(3.0, hostile * 2.0)))
    scorers = tuple(identity_of(seed, number).peer_id for number, role in enumerate(roles) if role == "scorer")
    policy = Policy(
        need=4,
        of=7,
        scorers=scorers,
        max_depth=3,
        lease_s=25,
        patience_s=40,
        rounds=1,
        fan_out=(3, 6),
        synthesis="root",
    )
    first = roles.index("executor")
    faults: list[Fault] = [
        Weather(at=5, until=45, loss=rng.choice((0.1, 0.3)), duplicate=0.1, reorder=0.3, delay=(0.01, 0.5)),
        Cut(at=10, until=30, shape=rng.choice(("halves", "one-way", "islands"))),
        *(Crash(member=first + n, when=Said(kind="claim", then_s=1.0 + n)) for n in range(3)),
        *(Stop(member=first + n, when=Said(kind="claim", then_s=1.0), for_s=45.0) for n in range(3, 5)),
    ]
    return Scenario(
        seed=seed,
        members=tuple(members),
        policy=policy,
        faults=tuple(faults),
        heal_s=60.0,
        degree=8,
        tokens_per_second=8.0,
    )


class _Draw:
    def __init__(self, seed: int, count: int, kinds: frozenset[str], rng: random.Random) -> None:
        self.seed, self.count, self.kinds, self.rng = seed, count, kinds, rng
        self.heal_s = float(rng.randint(45, 110))
        self.roles = self._roles()
        scorers = self.roles.count("scorer")
        self.need = rng.randint(1, min(3, scorers))
        self.spare = {role: self.roles.count(role) - self._least(role) for role in set(self.roles)}
        """How many of a role the plan can do without."""

    def _least(self, role: str) -> int:
        return {"scorer": self.need, "decomposer": 1, "executor": 1, "operator": 1}.get(role, 0)

    def _roles(self) -> list[str]:
        rng = self.rng
        roles = ["operator", "decomposer", "scorer", "executor"]
        if "hostile" in self.kinds:
            roles += ["hostile"] * max(1, self.count // rng.choice((4, 5, 8)))
        more = ["decomposer", "scorer", "scorer", "executor", "executor", "observer"]
        while len(roles) < self.count:
            roles.append(rng.choice(more))
        return roles

    def scenario(self) -> Scenario:
        rng = self.rng
        members = tuple(self._member(number, role) for number, role in enumerate(self.roles))
        faults: list[Fault] = []
        for kind in KINDS:
            if kind in self.kinds and kind in _DRAWS:
                faults += _DRAWS[kind](self)
        goals = (1.0,) if rng.random() < 0.8 else (1.0, round(rng.uniform(5, 40), 2))
        hostile = "hostile" in self.kinds
        return Scenario(
            seed=self.seed,
            members=members,
            policy=self._policy(),
            goals=goals,
            faults=tuple(faults),
            heal_s=self.heal_s,
            hostile_stay=hostile and rng.random() < 0.4,
            tokens_per_second=float(rng.choice((5, 10, 20, 40))),
        )

    def _policy(self) -> Policy:
        rng = self.rng
        scorers = [number for number, role in enumerate(self.roles) if role == "scorer"]
        closed = rng.random() < (0.6 if "hostile" in self.kinds else 0.15)
        return Policy(
            need=self.need,
            of=max(self.need, len(scorers)),
            scorers=tuple(identity_of(self.seed, number).peer_id for number in scorers) if closed else (),
            rivals=rng.choice((1, 2, 2, 3)),
            rounds=rng.choice((0, 1, 1)),
            fan_out=rng.choice(((2, 3), (2, 4), (3, 4))),
            max_depth=rng.choice((1, 2, 3, 3, 3, 4)),
            pass_mark=rng.choice((60, 60, 75, 99)),
            patience_s=rng.choice((20, 40)),
            lease_s=rng.choice((15, 25)),
            attempts=rng.choice((2, 3)),
            settle_ms=rng.choice((300, 1000)),
            synthesis=rng.choice(("none", "root", "root", "all")),
        )

    def _member(self, number: int, role: str) -> Member:
        rng, kinds = self.rng, self.kinds
        joins = round(rng.uniform(0, 0.5), 3)
        if "join" in kinds and role != "operator" and rng.random() < 0.4:
            joins = round(rng.uniform(1, self.heal_s), 2)
        if role == "hostile":
            tricks = tuple(sorted(rng.sample(sorted(TRICKS), rng.randint(1, 6))))
            return Member(role=role, joins_s=joins, tricks=tricks, every_s=rng.choice((1.5, 3.0, 6.0)))
        skew, slow, fails = 0, 1.0, 0.0
        if "clock" in kinds and rng.random() < 0.5:
            skew = self._skew()
        if "model" in kinds and rng.random() < 0.6:
            slow = rng.choice((1.0, 4.0, 20.0))
            fails = rng.choice((0.0, 0.2, 0.9))
        return Member(role=role, joins_s=joins, skew_ms=skew, slow=slow, fails=fails)

    def _skew(self) -> int:
        """Mostly seconds; an hour ahead is rare here, as what it says is held for an hour."""
        rng = self.rng
        if rng.random() < 0.03:
            return HOUR_MS
        return rng.choice((-HOUR_MS, -60_000, -5_000, -3_000, 3_000, 4_900, 5_100, 5_000, 20_000))

    # --- faults

    def _span(self, longest: float = 60.0) -> tuple[float, float]:
        at = round(self.rng.uniform(0, self.heal_s * 0.7), 2)
        return at, round(min(self.heal_s, at + self.rng.uniform(5, longest)), 2)

    def loss(self) -> list[Fault]:
        at, until = self._span(100)
        return [Weather(at=at, until=until, loss=self.rng.choice((0.1, 0.3, 0.6)))]

    def duplicate(self) -> list[Fault]:
        at, until = self._span(100)
        return [Weather(at=at, until=until, duplicate=self.rng.choice((0.2, 1.0)))]

    def reorder(self) -> list[Fault]:
        at, until = self._span(100)
        return [
            Weather(at=at, until=until, reorder=self.rng.choice((0.3, 1.0)), delay=(0.001, self.rng.choice((0.5, 4.0))))
        ]

    def delay(self) -> list[Fault]:
        at, until = self._span(100)
        return [Weather(at=at, until=until, delay=self.rng.choice(((0.5, 1.0), (2.0, 6.0), (0.01, 15.0))))]

    def partition(self) -> list[Fault]:
        cuts: list[Fault] = []
        for _ in range(self.rng.choice((1, 1, 2))):
            at, until = self._span()
            shape = self.rng.choice(("halves", "one-way", "bridge", "islands"))
            cuts.append(Cut(at=at, until=until, shape=shape, turn_s=self.rng.choice((6.0, 20.0))))
        return cuts

    def crash(self) -> list[Fault]:
        rng = self.rng
        faults: list[Fault] = []
        for _ in range(rng.randint(1, max(2, self.count // 2))):
            role = rng.choice(("operator", "decomposer", "scorer", "executor", "executor", "observer"))
            if role not in self.roles:
                continue
            number = rng.choice([n for n, other in enumerate(self.roles) if other == role])
            when: float | Said = round(rng.uniform(0.5, self.heal_s), 2)
            if role in SAID and rng.random() < 0.7:
                when = self._step(role)
            back: float | None = round(rng.choice((0.1, 3.0, 20.0, 60.0)) * rng.uniform(0.8, 1.2), 2)
            if rng.random() < 0.4 and self.spare.get(role, 0) > 0:
                self.spare[role] -= 1
                back = None
            disk = rng.choice(("kept", "kept", "kept", "lost", "torn", "stale"))
            faults.append(Crash(member=number, when=when, back_s=back, disk=disk))
        return faults

    def _step(self, role: str) -> Said:
        rng = self.rng
        point = rng.choice(("before", "journalled", "published", "published"))
        then = round(rng.uniform(0.2, 6.0), 2) if point == "published" and rng.random() < 0.6 else 0.0
        return Said(
            kind=rng.choice(SAID[role]),
            nth=0 if role == "operator" else rng.choice((0, 0, 1, 2)),
            point=point,
            then_s=then,
        )

    def stop(self) -> list[Fault]:
        rng = self.rng
        faults: list[Fault] = []
        for _ in range(rng.randint(1, 3)):
            role = rng.choice(("operator", "decomposer", "scorer", "executor", "executor", "observer"))
            if role in self.roles:
                number = rng.choice([n for n, other in enumerate(self.roles) if other == role])
                when = (
                    self._step(role) if role in SAID and rng.random() < 0.7 else round(rng.uniform(1, self.heal_s), 2)
                )
                for_s = round(rng.choice((2.0, 10.0, 40.0, 90.0)) * rng.uniform(0.8, 1.2), 2)
                faults.append(Stop(member=number, when=when, for_s=for_s))
        return faults

    def clock(self) -> list[Fault]:
        rng = self.rng
        faults: list[Fault] = []
        for _ in range(rng.randint(0, 3)):
            number = rng.randrange(self.count)
            if self.roles[number] != "hostile":
                faults.append(Jump(member=number, at=round(rng.uniform(1, self.heal_s), 2), ms=self._skew()))
        return faults

    def join(self) -> list[Fault]:
        """Joining late is in the members; here: leaving."""
        rng = self.rng
        number = rng.randrange(self.count)
        role = self.roles[number]
        if role in ("hostile", "observer") or self.spare.get(role, 0) <= 0 or rng.random() < 0.5:
            return []
        self.spare[role] -= 1
        return [Leave(member=number, at=round(rng.uniform(2, self.heal_s), 2))]

    def steer(self) -> list[Fault]:
        rng = self.rng
        acts = ("policy", "pick", "veto", "retry", "note", "pause")
        return [
            Steering(at=round(rng.uniform(2, self.heal_s), 2), act=rng.choice(acts)) for _ in range(rng.randint(1, 6))
        ]


_DRAWS: dict[str, Callable[[_Draw], list[Fault]]] = {
    "loss": _Draw.loss,
    "duplicate": _Draw.duplicate,
    "reorder": _Draw.reorder,
    "delay": _Draw.delay,
    "partition": _Draw.partition,
    "crash": _Draw.crash,
    "stop": _Draw.stop,
    "clock": _Draw.clock,
    "join": _Draw.join,
    "steer": _Draw.steer,
}
