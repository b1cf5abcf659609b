"""The hybrid logical clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swarmtui.plan.clock import MAX_AHEAD_MS, HybridClock, from_ms, to_seconds


class Wall:
    now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


def test_it_shows_wall_time() -> None:
    clock = HybridClock(Wall())
    assert to_seconds(clock.tick()) == 1_700_000_000.0


def test_what_is_said_is_later_than_what_was_heard() -> None:
    wall = Wall()
    clock = HybridClock(wall)
    heard = from_ms(wall.now + MAX_AHEAD_MS) + 3
    clock.merge(heard)
    assert clock.tick() == heard + 1


def test_a_clock_far_ahead_pulls_nobody_along() -> None:
    wall = Wall()
    clock = HybridClock(wall)
    wrong = from_ms(wall.now + MAX_AHEAD_MS + 1)
    clock.merge(wrong)
    assert clock.tick() == from_ms(wall.now)
    assert clock.ahead_ms(wrong) == MAX_AHEAD_MS + 1
    assert clock.ahead_ms(from_ms(wall.now - 7)) == -7


@given(st.lists(st.tuples(st.integers(-10_000, 10_000), st.integers(-10_000, 10_000))))
def test_readings_only_grow_whatever_the_wall_clock_does(moves: list[tuple[int, int]]) -> None:
    wall = Wall()
    clock = HybridClock(wall)
    last = clock.tick()
    for jump, heard in moves:
        wall.now += jump
        clock.merge(from_ms(wall.now + heard))
        reading = clock.tick()
        assert reading > last
        assert clock.last == reading
        last = reading


def test_more_readings_in_a_millisecond_than_the_counter_holds_go_on() -> None:
    clock = HybridClock(Wall())
    clock.merge(from_ms(Wall.now) + 0xFFFF)
    assert clock.tick() == from_ms(Wall.now + 1)
