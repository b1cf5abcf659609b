"""What an agent shows of its writing."""

from swarmtui.agents.status import SILENT_S, TAIL_CHARACTERS, Status


def test_speed_is_told_while_it_writes_and_not_after() -> None:
    status = Status()
    assert status.tokens_per_second(1.0) == 0
    for at in range(5):
        status.wrote("word ", 10.0 + at / 2)
    assert status.tokens_per_second(12.0) == 2.0
    assert status.tokens_per_second(12.0 + SILENT_S) == 0
    status.blank()
    assert (status.tokens_per_second(12.0), status.tail) == (0, "")


def test_a_burst_is_no_speed() -> None:
    status = Status()
    for _ in range(50):
        status.wrote("word ", 10.0)
    assert status.tokens_per_second(10.0) == 0
    status.wrote("word ", 10.1)
    assert status.tokens_per_second(10.1) == 100


def test_only_the_end_is_kept() -> None:
    status = Status()
    status.wrote("a" * 1000 + "end", 1.0)
    assert len(status.tail) == TAIL_CHARACTERS
    assert status.tail.endswith("end")
