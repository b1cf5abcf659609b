"""The marks: what plain looking and likelihoods say of a draft, as numbers from 0 to 100 and a critique. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from swarmtui.plan.ops import Marks, PeerId

Emphasis: TypeAlias = Literal["specific", "distinct", "complete"]


@dataclass(frozen=True, slots=True)
class Gains:
    """Mean log probabilities per token, as a model gave them."""

    goal_given_steps: float
    goal_alone: float
    steps_given_goal: tuple[float, ...]
    steps_alone: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    marks: Marks
    critique: str


def emphasis_of(peer: PeerId) -> Emphasis:
    return "specific"


def by_likelihood(title: str, steps: Sequence[str], gains: Gains, emphasis: Emphasis) -> Verdict:
    return Verdict(Marks(specific=60, distinct=60, complete=60), "")


def by_word(title: str, steps: Sequence[str], marks: Marks, critique: str, emphasis: Emphasis) -> Verdict:
    return Verdict(marks, critique)
