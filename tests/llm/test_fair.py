"""Turns among agents: by priority, then by who had fewest."""

import pytest

from swarmtui.llm.fair import FairQueue


def drain(queue):
    return [queue.pop() for _ in range(len(queue))]


def test_a_busy_agent_doesnt_hold_up_the_others():
    queue = FairQueue()
    for i in range(4):
        queue.push("greedy", 0, f"g{i}")
    queue.push("modest", 0, "m0")
    queue.push("modest", 0, "m1")
    assert drain(queue) == ["g0", "m0", "g1", "m1", "g2", "g3"]


def test_the_urgent_goes_first():
    queue = FairQueue()
    queue.push("ada", 0, "later")
    queue.push("bob", 5, "now")
    assert drain(queue) == ["now", "later"]


def test_one_that_comes_late_starts_level_and_gets_no_arrears():
    queue = FairQueue()
    for i in range(6):
        queue.push("old", 0, f"o{i}")
    assert [queue.pop() for _ in range(4)] == ["o0", "o1", "o2", "o3"]
    for i in range(3):
        queue.push("new", 0, f"n{i}")
    assert drain(queue) == ["o4", "n0", "o5", "n1", "n2"]


def test_what_is_withdrawn_is_gone():
    queue = FairQueue()
    items = [object(), object()]
    for each in items:
        queue.push("ada", 0, each)
    assert queue.remove(items[0])
    assert not queue.remove(items[0])
    assert drain(queue) == [items[1]]
    with pytest.raises(IndexError):
        queue.pop()
