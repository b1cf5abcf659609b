"""Measuring how fast a loaded model reads and writes here, one answer alone and several in a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median, quantiles

from swarmtui.llm.engine_llama import Weights
from swarmtui.llm.sampler import Sampler
from swarmtui.llm.wire import Speed

BUDGET_S = 1.5
TOO_SLOW_S = 0.5
"""A model that takes longer for a single token isn't measured: the weights' way to the processor is what takes so long,
and that is shared by all answers of a step."""
ROUNDS = 9
LEAST_ROUNDS = 3
STEPS = 2
"""Steps of one try."""
PROMPT = 32


def widths(slots: int) -> list[int]:
    """What is tried: 1, 2, 4 … and all slots."""
    found = [1]
    while found[-1] * 2 < slots:
        found.append(found[-1] * 2)
    return [*found, slots] if slots > 1 else found


def measure(
    weights: Weights, tokens: Sequence[int], slots: int, now: Callable[[], float] = time.perf_counter
) -> tuple[float, list[Speed]]:
    """(tokens read per second, tokens written per second by width); no speeds if the model is too slow.

    The widths take turns, so that a machine that others use for a while slows all of them down; the middle of the tries
    counts, and how far they lie apart is told with it. All sequences are empty afterwards.
    """
    began = now()
    prompt = [*tokens] * (PROMPT // max(1, len(tokens)) + 1)
    prompt = prompt[:PROMPT]
    reads = []
    for _ in range(2):
        weights.trim(0, 0)
        start = now()
        weights.decode([(token, i, 0, i == PROMPT - 1) for i, token in enumerate(prompt)])
        weights.logits(PROMPT - 1)
        reads.append(PROMPT / (now() - start))
    for sequence in range(1, slots):
        weights.copy(0, sequence, PROMPT)
    sampler = Sampler(1, 0.7)
    ends = [PROMPT] * slots

    def write(width: int) -> float:
        start = now()
        for _ in range(STEPS):
            weights.decode([(prompt[0], ends[sequence], sequence, True) for sequence in range(width)])
            for i in range(width):
                sampler.pick(weights.logits(i))
                ends[i] += 1
        return now() - start

    tries: dict[int, list[float]] = {}
    if write(1) <= TOO_SLOW_S * STEPS:
        tries = _in_turns(write, widths(slots), lambda: now() - began)
    for sequence in range(slots):
        weights.trim(sequence, 0)
    speeds = [_speed(width, seconds) for width, seconds in tries.items()]
    return max(reads), speeds if len(speeds) > 1 or slots == 1 else []


def _in_turns(
    write: Callable[[int], float], tried: Sequence[int], elapsed: Callable[[], float]
) -> dict[int, list[float]]:
    """Seconds of each try by width, as many rounds as the budget allows; nothing if it allows too few."""
    for width in tried:
        write(width)  # the first of a kind prepares things
    tries: dict[int, list[float]] = {width: [] for width in tried}
    for number in range(ROUNDS):
        if elapsed() > BUDGET_S and number >= LEAST_ROUNDS:
            break
        for width in tried:
            tries[width].append(write(width))
        if elapsed() > 4 * BUDGET_S:
            break
    return tries


def _speed(width: int, seconds: Sequence[float]) -> Speed:
    rates = sorted(width * STEPS / each for each in seconds)
    middle = median(rates)
    if len(rates) < 2:
        return Speed(width, middle, 1.0)
    low, _, high = quantiles(rates, n=4)
    return Speed(width, middle, (high - low) / 2 / middle)
