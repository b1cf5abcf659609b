"""The marks: what plain looking and likelihoods say of a draft, as numbers from 0 to 100 and a critique. Pure.

A step is weighed by how much likelier it is after its task than after neutral tasks, and by how much it says; the marks
follow from the weights, the words that steps share, and how likely the list makes the task. The formula, its constants
and how good it is stand in docs/judge.md.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from swarmtui.plan.ops import Marks, PeerId

from .drafts import alike, repeats, restates
from .scale import SURE, Scale
from .wording import cut, nats

Emphasis: TypeAlias = Literal["specific", "distinct", "complete"]
EMPHASES: tuple[Emphasis, ...] = ("specific", "distinct", "complete")
MIDDLE = 60
"""Marks are spread from here by a scorer's emphasis: about the usual pass mark, so that sound drafts stay sound."""
SHARPER, BLUNTER = 1.3, 0.85
FITTING, FITTING_WIDTH = 0.3, 0.4
"""Gain of a step that may fit or not, as a share of that of steps that fit; how blurred, as a share of the spread."""
BENEFIT = 0.8
"""How surely a step is taken to fit if the model can't tell."""
LEAST_WIDTH = 1.0
CONCRETE, CONCRETE_GAIN, CONCRETE_WIDTH = 0.52, 0.12, 0.04
"""Content of a step that's half concrete, half vague; how much more if gains are believed, as they count too; how
blurred: all as shares of the content of reference steps."""
STRANGE = 0.3
"""What's left of the weight of a step in another language."""
TWIN, TWIN_WIDTH, TWIN_COST = 1.6, 0.16, 0.5
"""Where two steps are as likely one as not, as a share of the gain of steps that fit; how blurred; what it costs."""
LIKELY_TWIN = 0.5
"""Steps that are more surely one are named in the critique."""
LOWEST = 0.3
"""Share of the steps, at least two, that count as the weakest: of many good ones, two are always weak."""
WEAK = 0.4
"""A step of less weight is named in the critique."""
COVERED, COVERED_WIDTH = 0.4, 0.5
"""Cover of a list that may be about the task or not; how blurred."""
USUAL_COVER, MOST_COVER = 0.6, 3.0
"""Cover of a list that wasn't asked for it; more than any list has."""
CALIBRATION = 2.0


@dataclass(frozen=True, slots=True)
class Gains:
    """Mean log probabilities per token, as a model gave them."""

    steps_given_goal: tuple[float, ...]
    steps_alone: tuple[float, ...]
    """Each the mean over the neutral tasks."""
    cover: float = USUAL_COVER
    """How much likelier the task is after the list than after none."""
    steps_given_step: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """(i, j) → of step j as another way to say step i; empty if that wasn't asked."""
    scale: Scale = SURE
    """What the model's figures mean in this language."""
    strange: frozenset[int] = frozenset()
    """Indexes of steps that are in another language than the task."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a scorer thinks of a draft."""

    marks: Marks
    critique: str


def emphasis_of(peer: PeerId, scorers: Collection[PeerId]) -> Emphasis:
    """What this scorer looks at most, by its place among those who are there: three scorers look at all three."""
    return EMPHASES[sorted({*scorers, peer}).index(peer) % len(EMPHASES)]


def by_likelihood(
    title: str,
    steps: Sequence[str],
    gains: Gains,
    emphasis: Emphasis | None,
    enough: int = 3,
    pass_mark: float = MIDDLE,
) -> Verdict:
    """Mark a draft by likelihood.

    Args:
        title: the task's.
        steps: their titles.
        gains: of this task and these steps.
        emphasis: the scorer's; None: none.
        enough: fewest steps of a complete list.
        pass_mark: who doesn't reach it is told why.
    """
    weights = weigh(title, steps, gains)
    pairs = twins(steps, gains)
    distinct = _distinct(title, steps, enough) * (1 - TWIN_COST * max(pairs.values(), default=0.0))
    raw = (_specific(weights), distinct, _complete(title, steps, weights, gains, enough))
    specific, distinct, complete = (100 * value**CALIBRATION for value in raw)
    marks = emphasised(specific, distinct, complete, emphasis)
    weak = sorted((i for i, weight in enumerate(weights) if weight < WEAK), key=lambda i: weights[i])
    vague = {i for i, step in enumerate(steps) if _says(step, gains, i) < 0.5}
    same = [pair for pair in pairs if pairs[pair] > LIKELY_TWIN]
    found = critique(title, steps, weak, enough, vague, gains.strange, same)
    return _with_a_word(marks, found, pass_mark, title, steps, weights)


def by_word(
    title: str,
    steps: Sequence[str],
    marks: Marks,
    said: str,
    emphasis: Emphasis | None,
    enough: int = 3,
    pass_mark: float = MIDDLE,
) -> Verdict:
    """Marks that a model wrote, corrected by what can be seen plainly: small models write any number."""
    distinct = min(marks.distinct, round(100 * _distinct(title, steps, enough) ** CALIBRATION))
    complete = min(marks.complete, 20) if _left(title, steps) < enough else marks.complete
    corrected = emphasised(marks.specific, distinct, complete, emphasis)
    found = " ".join(part for part in (critique(title, steps, [], enough), said) if part)
    return _with_a_word(corrected, found, pass_mark, title, steps)


def _with_a_word(
    marks: Marks, found: str, pass_mark: float, title: str, steps: Sequence[str], weights: Sequence[float] = ()
) -> Verdict:
    """A verdict; who doesn't pass and was found no fault with is told what it lacks."""
    return Verdict(marks, found or (_lacks(marks, title, steps, weights) if marks.mean < pass_mark else ""))


def _lacks(marks: Marks, title: str, steps: Sequence[str], weights: Sequence[float]) -> str:
    """What a list without any plain fault lacks most."""
    match min(EMPHASES, key=lambda name: getattr(marks, name)):
        case "specific":
            if not weights:
                return "The steps could say more exactly what to do."
            i = weights.index(min(weights))
            return (
                f'Step {i + 1} ("{cut(steps[i], 80)}") belongs least surely to the task: say more exactly what to do.'
            )
        case "distinct":
            pairs = ((i, j) for j in range(len(steps)) for i in range(j))
            i, j = max(pairs, key=lambda pair: alike(steps[pair[0]], steps[pair[1]], title), default=(0, 0))
            return f"Steps {i + 1} and {j + 1} are close to each other." if i < j else "One step is no split."
        case _:
            return "Taken together the steps say too little of the task: something is missing."


def weigh(title: str, steps: Sequence[str], gains: Gains) -> list[float]:
    """How surely each step belongs to the task and says something, 0 to 1."""
    weights = []
    for i, step in enumerate(steps):
        gain = nats(step, gains.steps_given_goal[i] - gains.steps_alone[i])
        weight = fits(gain, gains.scale) * _says(step, gains, i)
        if i in gains.strange:
            weight *= STRANGE
        weights.append(0.0 if restates(step, title) else weight)
    return weights


def _says(step: str, gains: Gains, i: int) -> float:
    return concrete(nats(step, gains.steps_given_goal[i] - 2 * gains.steps_alone[i]), gains.scale)


def fits(gain: float, scale: Scale) -> float:
    """How surely a step with this gain (in nats) belongs to the task, as far as the model can be trusted."""
    middle, width = max(0.0, FITTING * scale.gain), max(LEAST_WIDTH, FITTING_WIDTH * scale.spread)
    return scale.trust * _logistic((gain - middle) / width) + (1 - scale.trust) * BENEFIT


def concrete(content: float, scale: Scale) -> float:
    """How surely a step that's so unlikely (in nats) says something."""
    if not scale.content:
        return 1.0
    return _logistic((content / scale.content - CONCRETE - CONCRETE_GAIN * scale.trust) / CONCRETE_WIDTH)


def twins(steps: Sequence[str], gains: Gains) -> dict[tuple[int, int], float]:
    """How surely two steps (earlier, later) say the same in other words, 0 to 1.

    By how much likelier each is as another way to say the other than as another way to say the rest, in nats.
    """
    after, count = gains.steps_given_step, len(steps)
    if not after:
        return {}

    def drawn(i: int, j: int) -> float:
        rest = [after[k, j] for k in range(count) if k not in (i, j)]
        return nats(steps[j], after[i, j] - sum(rest) / len(rest))

    middle, width = TWIN * gains.scale.gain, TWIN_WIDTH * gains.scale.gain
    return {
        (i, j): gains.scale.trust * _logistic((drawn(i, j) + drawn(j, i) - middle) / width)
        for j in range(count)
        for i in range(j)
    }


def _specific(weights: Sequence[float]) -> float:
    lowest = sorted(weights)[: max(2, round(LOWEST * len(weights)))]
    return 0.3 * sum(weights) / len(weights) + 0.7 * sum(lowest) / len(lowest)


def _distinct(title: str, steps: Sequence[str], enough: int) -> float:
    most = max((alike(steps[i], steps[j], title) for j in range(len(steps)) for i in range(j)), default=0.0)
    value = 1 - 0.4 * most
    twice, again = len(repeats(steps, title)), any(restates(step, title) for step in steps)
    if twice or again:
        value = min(value, 0.25 - 0.05 * min(4, twice + again - 1))
    # Few steps seldom repeat anything: that's no merit.
    return value * min(1.0, len(steps) / enough)


def _complete(title: str, steps: Sequence[str], weights: Sequence[float], gains: Gains, enough: int) -> float:
    idle = _idle(title, steps)
    sound = sum(weight for i, weight in enumerate(weights) if i not in idle)
    cover = gains.cover
    if any(restates(step, title) for step in steps):
        cover = min(cover, 1.2)  # A step that says the task makes the task likely, and nothing else.
    value = (1 - math.exp(-sound / 1.6)) * (0.45 + 0.55 * _logistic((cover - COVERED) / COVERED_WIDTH))
    return value if _left(title, steps) >= enough else 0.45 * value


def _idle(title: str, steps: Sequence[str]) -> set[int]:
    """Steps that add nothing: repeats of earlier ones, and the task again."""
    return {later for _, later in repeats(steps, title)} | {i for i, step in enumerate(steps) if restates(step, title)}


def _left(title: str, steps: Sequence[str]) -> int:
    return len(steps) - len(_idle(title, steps))


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, x))))


def emphasised(specific: float, distinct: float, complete: float, emphasis: Emphasis | None) -> Marks:
    """Marks as a scorer with this emphasis gives them: spread in what it looks at, closer elsewhere."""
    values = {"specific": specific, "distinct": distinct, "complete": complete}
    if emphasis is not None:
        values = {
            name: MIDDLE + (SHARPER if name == emphasis else BLUNTER) * (value - MIDDLE)
            for name, value in values.items()
        }
    return Marks(**{name: max(0, min(100, round(value))) for name, value in values.items()})


def critique(
    title: str,
    steps: Sequence[str],
    weak: Sequence[int],
    enough: int,
    vague: Collection[int] = (),
    foreign: Collection[int] = (),
    same: Sequence[tuple[int, int]] = (),
) -> str:
    """What's wrong, naming the steps; '' if nothing is.

    Args:
        title: the task's.
        steps: their titles.
        weak: indexes of steps of little weight, the weakest first.
        enough: fewest steps of a complete list.
        vague: indexes of steps that say nothing particular.
        foreign: indexes of steps in another language.
        same: pairs of steps that seem to say the same in other words.
    """
    plain = repeats(steps, title)
    said = [f"Step {j + 1} repeats step {i + 1}." for i, j in plain]
    said += [f"Step {j + 1} seems to say the same as step {i + 1}." for i, j in same if (i, j) not in plain]
    idle = _idle(title, steps)
    said += [f"Step {i + 1} only says the task again." for i, step in enumerate(steps) if restates(step, title)]
    for i in [i for i in weak if i not in idle][:3]:
        name = cut(steps[i], 80)
        if i in foreign:
            said.append(f'Step {i + 1} ("{name}") is in another language.')
        elif i in vague:
            said.append(f'Step {i + 1} ("{name}") is vague: say what exactly.')
        else:
            said.append(f'Step {i + 1} ("{name}") has little to do with the task.')
    if len(steps) - len(idle) < enough:
        said.append("Too few steps: something is missing.")
    return " ".join(said)
