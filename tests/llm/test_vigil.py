"""Hung, slow, or a machine that slept?"""

from swarmtui.llm.vigil import LONGEST_TICK_S, Vigil


def ticks(vigil, count, seconds=1.0, owed=True):
    return [vigil.tick(seconds, owed) for _ in range(count)]


def test_silence_while_something_is_owed_is_a_hang():
    vigil = Vigil(patience_s=10)
    assert not any(ticks(vigil, 10))
    assert vigil.tick(1.0, True)


def test_silence_without_work_is_none():
    vigil = Vigil(patience_s=10)
    assert not any(ticks(vigil, 100, owed=False))
    assert not any(ticks(vigil, 10))
    assert vigil.tick(1.0, True)


def test_each_sign_starts_anew():
    vigil = Vigil(patience_s=10)
    for _ in range(20):
        assert not any(ticks(vigil, 9))
        vigil.heard()


def test_a_slow_engine_says_so_and_gets_its_time():
    """A big model on a slow machine: a step may take a minute, if it's announced."""
    vigil = Vigil(patience_s=10)
    vigil.heard(60.0)
    assert not any(ticks(vigil, 190))
    assert vigil.tick(1.0, True)
    vigil.heard()
    assert any(ticks(vigil, 11)), "the next sign promised nothing"


def test_a_stopped_machine_is_no_hang():
    """Everything was stopped for a day: the first tick after it counts as a short one."""
    vigil = Vigil(patience_s=10)
    assert not vigil.tick(86_400.0, True)
    assert vigil.silence == LONGEST_TICK_S
    assert not any(ticks(vigil, 8))
    assert vigil.tick(1.0, True)
