"""Each fault alone, at its worst: the plan gets done, all hold and show the same, nobody ends."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from swarmtui.peer import peer as peer_module
from swarmtui.plan.replica import Replica
from swarmtui.sim.hostile import TRICKS
from swarmtui.sim.run import run
from swarmtui.sim.scenario import Crash, Cut, Jump, Leave, Said, Steering, Stop, Weather

from .scenes import (
    CREW,
    DECOMPOSER,
    EXECUTOR,
    EXECUTOR_2,
    HEAL_S,
    OBSERVER,
    OPERATOR,
    POLICY,
    SCORER,
    played,
    scene,
)

STEPS = [
    (OPERATOR, "goal"),
    (DECOMPOSER, "proposal"),
    (SCORER, "vote"),
    (EXECUTOR, "claim"),
    (EXECUTOR, "result"),
]
HOUR_MS = 3_600_000


def test_nothing_goes_wrong() -> None:
    outcome = played(scene())
    assert outcome.tasks >= 3
    assert outcome.results == outcome.tasks
    assert outcome.flipped == 0


@pytest.mark.parametrize(
    "weather",
    [
        {"loss": 0.1},
        {"loss": 0.6},
        {"duplicate": 1.0},
        {"reorder": 1.0, "delay": (0.001, 3.0)},
        {"reorder": 0.5, "delay": (0.001, 15.0)},
        {"delay": (5.0, 6.0)},
        {"loss": 0.4, "duplicate": 0.5, "reorder": 0.5, "delay": (0.01, 2.0)},
    ],
    ids=str,
)
def test_weather(weather: dict[str, Any]) -> None:
    played(scene(Weather(at=0, until=HEAL_S, **weather)))


@pytest.mark.parametrize("shape", ["halves", "one-way", "bridge", "islands"])
@pytest.mark.parametrize("at", [0.0, 12.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_partitions(shape: str, at: float, seed: int) -> None:
    played(scene(Cut(at=at, until=HEAL_S, shape=shape, turn_s=8.0), seed=seed))


@pytest.mark.parametrize(("who", "kind"), STEPS, ids=lambda each: str(each))
@pytest.mark.parametrize("point", ["before", "journalled", "published"])
@pytest.mark.parametrize("disk", ["kept", "lost"])
def test_a_crash_at_every_step_of_every_role(who: int, kind: str, point: str, disk: str) -> None:
    said = Said(kind=kind, point=point)
    outcome = played(scene(Crash(member=who, when=said, back_s=3.0, disk=disk)))
    if (kind, point, disk) != ("goal", "journalled", "lost"):  # then nobody ever knew of it
        assert outcome.tasks >= 3


@pytest.mark.parametrize("disk", ["torn", "stale"])
@pytest.mark.parametrize("who", [OPERATOR, SCORER, EXECUTOR])
def test_a_crash_that_damages_the_journal(who: int, disk: str) -> None:
    played(scene(Crash(member=who, when=25.0, back_s=2.0, disk=disk)))


def test_all_are_killed_at_once_and_go_on_from_their_journals() -> None:
    outcome = played(scene(*(Crash(member=who, when=14.0, back_s=1.0 + who / 10) for who in range(len(CREW)))))
    assert outcome.tasks >= 3


@pytest.mark.parametrize("then_s", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("nth", [0, 1])
def test_a_dead_holders_task_is_taken_over(then_s: float, nth: int) -> None:
    """Within lease and patience of its last breath (judged by the simulator, where somebody was idle)."""
    outcome = played(scene(Crash(member=EXECUTOR, when=Said(kind="claim", nth=nth, then_s=then_s)), seed=4 + nth))
    assert outcome.takeovers
    assert max(outcome.takeovers) < POLICY.lease_s + POLICY.patience_s


@pytest.mark.parametrize("who", range(len(CREW)))
def test_a_member_that_is_stopped_for_longer_than_the_lease(who: int) -> None:
    played(scene(Stop(member=who, when=9.0, for_s=55.0)))


def test_a_stopped_holder_is_taken_over_and_no_task_gets_two_results_that_count() -> None:
    outcome = played(scene(Stop(member=EXECUTOR, when=Said(kind="claim", then_s=0.7), for_s=45.0)))
    assert outcome.takeovers
    assert outcome.results >= outcome.tasks


@pytest.mark.parametrize("skew_ms", [-HOUR_MS, -5_000, -4_000, 4_000, 5_000, 6_000, 30_000])
@pytest.mark.parametrize("who", [OPERATOR, DECOMPOSER, SCORER, EXECUTOR])
def test_a_wrong_clock(who: int, skew_ms: int) -> None:
    played(scene(members={who: {"skew_ms": skew_ms}}))


@pytest.mark.parametrize("who", [OPERATOR, EXECUTOR])
def test_a_clock_an_hour_ahead(who: int) -> None:
    """What it says is held for an hour: the plan waits for it, where nobody else can do it."""
    played(scene(members={who: {"skew_ms": HOUR_MS}}))


@pytest.mark.parametrize("ms", [-HOUR_MS, -20_000, -3_000, 3_000, 20_000])
@pytest.mark.parametrize("who", [OPERATOR, DECOMPOSER, SCORER, EXECUTOR, OBSERVER])
def test_a_clock_that_jumps(who: int, ms: int) -> None:
    played(scene(Jump(member=who, at=20.0, ms=ms), Jump(member=who, at=40.0, ms=-ms // 2)))


def test_slow_and_failing_models() -> None:
    played(scene(members={who: {"slow": 15.0} for who in (DECOMPOSER, SCORER, EXECUTOR)}))
    played(scene(members={who: {"fails": 0.9} for who in (DECOMPOSER, SCORER, EXECUTOR)}))
    played(scene(members={who: {"fails": 1.0} for who in (SCORER, EXECUTOR, EXECUTOR_2)}))


@pytest.mark.parametrize("at", [2.0, 15.0, 30.0, HEAL_S - 1, HEAL_S + 5])
def test_joiners_at_any_time(at: float) -> None:
    crew = (*CREW, "observer", "executor", "scorer", "decomposer")
    outcome = played(scene(crew=crew, members={number: {"joins_s": at} for number in range(7, 11)}))
    assert len(outcome.catchups) == 2


def test_leavers() -> None:
    played(scene(Leave(member=EXECUTOR, at=18.0), Leave(member=OBSERVER, at=20.0)))


@pytest.mark.parametrize("act", ["policy", "pick", "veto", "retry", "note", "pause"])
def test_the_operator_changes_its_mind(act: str) -> None:
    played(scene(*(Steering(at=at, act=act) for at in (8.0, 16.0, 24.0, 40.0))))


@pytest.mark.parametrize("trick", sorted(TRICKS))
def test_hostile_members(trick: str) -> None:
    """Two of them, until every plan is done."""
    crew = (*CREW, "hostile", "hostile")
    evil = {number: {"tricks": (trick,), "every_s": 2.0} for number in (7, 8)}
    played(scene(crew=crew, members=evil, hostile_stay=True))


def test_hostile_members_of_all_kinds_under_every_fault() -> None:
    crew = (*CREW, "hostile", "hostile")
    evil = {number: {"tricks": tuple(sorted(TRICKS)), "every_s": 1.0} for number in (7, 8)}
    faults = (
        Weather(at=0, until=50, loss=0.3, duplicate=0.3, reorder=0.5, delay=(0.01, 1.0)),
        Cut(at=20, until=45, shape="islands"),
        Crash(member=EXECUTOR, when=Said(kind="claim"), back_s=20.0, disk="lost"),
        Stop(member=SCORER, when=30.0, for_s=25.0),
        Jump(member=DECOMPOSER, at=25.0, ms=-20_000),
    )
    played(scene(*faults, crew=crew, members=evil, hostile_stay=True))


def test_memory_stays_under_a_computed_cap_in_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets a hundred times smaller than usual are hit; what's refused differs from peer to peer, so the sets may
    differ; but no budget is overrun, the honest plan gets done, and nobody ends."""
    author, total = 150_000, 1_000_000
    small = functools.partial(Replica, author_budget=author, total_budget=total, pen_limit=100_000)
    held: list[Replica] = []

    def kept(*args: Any) -> Replica:
        held.append(small(*args))
        return held[-1]

    monkeypatch.setattr(peer_module, "Replica", kept)
    crew = (*CREW, "hostile", "hostile")
    evil = {number: {"tricks": ("flood",), "every_s": 1.0} for number in (7, 8)}
    outcome = run(scene(crew=crew, members=evil, settle_s=30.0))
    assert {violation.rule for violation in outcome.violations} <= {"diverged"}
    assert outcome.finished_s >= 0
    assert len(held) >= 7
    assert any(replica.refused for replica in held), "the flood reached a budget"
    assert all(replica.weight <= total + 100_000 for replica in held)
    assert all(weight <= author for replica in held for weight in replica._weights.values())
