"""How strongly a model's likelihoods speak in a language: what makes its gains comparable with those of other models.

Measured on the neutral tasks of the scorer's prompts, each of which comes with two steps: how much likelier a step is
after its own task than after the others, against how much likelier it is after one of the others than after the rest.
A model that knows the language gains several times the spread; one that doesn't gains nothing, and isn't trusted then
with the question what belongs together.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .wording import nats

UNTRUSTED, TRUSTED = 0.7, 2.0
"""Separations at which a model isn't trusted at all, and from which on it's trusted fully."""
LEAST_TRUST = 0.25
"""A weak hint is better than none."""
LEAST_SPREAD = 0.5


@dataclass(frozen=True, slots=True)
class Scale:
    """What a model's figures mean in one language, in nats."""

    gain: float
    """How much more the reference steps gain after their own task than after others, on average."""
    spread: float
    """Standard deviation of what they gain after others."""
    content: float
    """How unlikely the reference steps are after tasks that they don't belong to, on average: how much they say."""

    @property
    def separation(self) -> float:
        """How many spreads own steps stand above others'."""
        return self.gain / self.spread

    @property
    def trust(self) -> float:
        """How far gains can be believed, up to 1."""
        return (
            max(LEAST_TRUST, min(1.0, (self.separation - UNTRUSTED) / (TRUSTED - UNTRUSTED))) if self.content else 0.0
        )


UNKNOWN = Scale(gain=0.0, spread=1.0, content=0.0)
"""Of a language without reference steps: nothing is believed."""
SURE = Scale(gain=12.1, spread=3.5, content=57.5)
"""About the bundled model's in English."""


def measure(steps: Mapping[str, Sequence[str]], weighed: Mapping[str, Mapping[str, float]]) -> Scale:
    """Reckon a scale.

    Args:
        steps: reference task → its steps.
        weighed: task (at least three) → step → mean log p per token of the step after the task.
    """
    own: list[float] = []
    other: list[float] = []
    contents: list[float] = []
    for task, its in steps.items():
        for step in its:
            after = {name: nats(step, values[step]) for name, values in weighed.items()}
            rest = [value for name, value in after.items() if name != task]
            mean = statistics.fmean(rest)
            own.append(after[task] - mean)
            contents.append(-mean)
            # Each against all but itself, else it would draw the mean towards it.
            other += [(value - mean) * len(rest) / (len(rest) - 1) for value in rest]
    return Scale(
        gain=statistics.fmean(own),
        spread=max(LEAST_SPREAD, statistics.pstdev(other)),
        content=statistics.fmean(contents),
    )
