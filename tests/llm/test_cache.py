"""What lies in the KV cache is found again; prefixes outlive their requests."""

import random

import pytest

from swarmtui.llm.engine_cache import Cache, shared


class Memory:
    """Keeps what a real cache would hold, to compare."""

    def __init__(self, rewinds=True):
        self.rewinds = rewinds
        self.copies = 0

    def trim(self, sequence, keep):
        return self.rewinds or keep == 0

    def copy(self, source, target, keep):
        self.copies += 1
        return self.rewinds or keep == 0


PREFIX = list(range(100, 130))


def work(cache, tokens, prefix=PREFIX):
    """A request: take, evaluate, pin, free; returns how much was known."""
    slot = cache.take(tokens)
    known = len(slot.tokens)
    assert slot.tokens == tokens[:known]
    assert known < len(tokens)
    slot.tokens = list(tokens)
    cache.pin(slot, prefix)
    cache.free(slot, len(tokens))
    return known


def test_a_prefix_is_read_once_and_survives_other_work():
    cache = Cache(Memory(), slots=2, pins=2, longest=40)
    assert work(cache, [*PREFIX, 1, 2]) == 0
    for other in range(4):
        work(cache, list(range(other * 1000, other * 1000 + 20)), prefix=[])
    assert work(cache, [*PREFIX, 3, 4]) == len(PREFIX)
    assert cache.pinned(PREFIX)


def test_the_same_prompt_again_evaluates_its_last_token_only():
    cache = Cache(Memory(), slots=1, pins=1, longest=40)
    tokens = [*PREFIX, 1, 2, 3]
    work(cache, tokens)
    assert work(cache, tokens) == len(tokens) - 1


def test_a_slot_that_knows_more_than_the_pin_is_taken():
    cache = Cache(Memory(), slots=2, pins=1, longest=40)
    work(cache, [*PREFIX, 1, 2, 3, 4])
    work(cache, [*PREFIX, 9, 9, 9, 9])
    assert work(cache, [*PREFIX, 1, 2, 3, 8]) == len(PREFIX) + 3


def test_pins_of_roles_not_used_for_longest_make_room():
    cache = Cache(Memory(), slots=1, pins=2, longest=40)
    prefixes = [[i] * 20 for i in range(3)]
    for prefix in (prefixes[0], prefixes[1], prefixes[0], prefixes[2]):
        work(cache, [*prefix, 7], prefix)
    assert [cache.pinned(each) for each in prefixes] == [True, False, True]


def test_a_model_that_cant_rewind_reads_again_and_is_right():
    cache = Cache(Memory(rewinds=False), slots=2, pins=1, longest=40)
    work(cache, [*PREFIX, 1, 2])
    assert work(cache, [*PREFIX, 3, 4]) == 0


def test_what_somebody_is_writing_behind_is_shared_with_the_next():
    cache = Cache(Memory(), slots=3, pins=1, longest=40)
    rival = [*PREFIX, 1, 2, 3, 4]
    writing = cache.take(rival)
    writing.tokens = [*rival, 70, 71]
    assert cache.known([*PREFIX, 1, 2, 9]) == len(PREFIX) + 2
    slot = cache.take([*PREFIX, 1, 2, 9, 9])
    assert slot is not writing
    assert slot.tokens == [*PREFIX, 1, 2]
    assert writing.tokens == [*rival, 70, 71], "goes on undisturbed"


def test_what_the_idle_hold_stays_when_somebody_else_knows_as_much():
    cache = Cache(Memory(), slots=2, pins=1, longest=40)
    work(cache, [*PREFIX, 1, 2])
    work(cache, [*PREFIX, 5, 6])
    work(cache, [*PREFIX, 7, 8])
    assert {tuple(each.tokens[-2:]) for each in cache.slots} == {(5, 6), (7, 8)}, "the one not used for longest went"


@pytest.mark.parametrize("length", [3, 41])
def test_prefixes_too_short_or_too_long_for_a_pin(length):
    cache = Cache(Memory(), slots=1, pins=1, longest=40)
    prefix = list(range(length))
    work(cache, [*prefix, 77], prefix)
    assert not cache.pinned(prefix)


def test_an_answer_goes_and_its_prompt_stays():
    cache = Cache(Memory(), slots=1, pins=1, longest=40)
    slot = cache.take([1, 2, 3])
    slot.tokens = [1, 2, 3, 70, 71]
    cache.free(slot, 3)
    assert slot.tokens == [1, 2, 3]


def test_none_when_all_are_busy():
    cache = Cache(Memory(), slots=1, pins=1, longest=40)
    slot = cache.take([1, 2])
    assert cache.take([1, 2]) is None
    cache.free(slot)
    assert cache.take([1, 2]) is slot


def test_shared():
    rng = random.Random(1)
    for _ in range(200):
        one = [rng.randrange(2) for _ in range(rng.randrange(8))]
        other = [rng.randrange(2) for _ in range(rng.randrange(8))]
        count = shared(one, other)
        assert one[:count] == other[:count]
        assert count == min(len(one), len(other)) or one[count] != other[count]
