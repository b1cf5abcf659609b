"""Signs of life come from progress, rarely where steps are short, from within where they're long."""

import pytest

from swarmtui.llm import wire
from swarmtui.llm.engine_pulse import UNKNOWN_S, Pulse


class Time:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def told():
    return []


@pytest.fixture
def pulse(told, time):
    return Pulse(told.append, time)


def step(pulse, time, seconds):
    long = pulse.begin()
    time.now += seconds
    pulse.end()
    return long


def test_the_first_step_is_of_unknown_length(pulse, told, time):
    assert step(pulse, time, 0.2)
    assert told == [wire.Beat(UNKNOWN_S)]


def test_short_steps_give_a_sign_now_and_then(pulse, told, time):
    step(pulse, time, 0.2)
    for _ in range(20):
        assert not step(pulse, time, 0.25)
    assert 4 <= len(told) - 1 <= 5
    assert all(each.seconds <= 0.25 for each in told[1:])


def test_something_else_that_was_said_is_a_sign_too(pulse, told, time):
    step(pulse, time, 0.2)
    for _ in range(20):
        step(pulse, time, 0.25)
        pulse.told()
    assert len(told) == 1


def test_long_steps_are_announced_and_give_signs_from_within(pulse, told, time):
    step(pulse, time, 8.0)
    assert pulse.begin()
    assert told[-1] == wire.Beat(8.0)
    for _ in range(80):
        time.now += 0.1
        pulse.within()
    assert 7 <= len(told) - 2 <= 8
    assert told[-1].seconds <= 1.0, "the next sign from within comes soon, however long the step is"


def test_signs_of_progress_are_given_but_not_a_thousand(pulse, told, time):
    for _ in range(1_000):
        time.now += 0.01
        pulse.within()
    assert 8 <= len(told) <= 10
    assert all(isinstance(each, wire.Beat) for each in told)
