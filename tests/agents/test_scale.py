"""The scale on which a model's gains are read, from likelihoods made by hand."""

from __future__ import annotations

import pytest

from swarmtui.agents import judging
from swarmtui.agents.scale import SURE, UNKNOWN, Scale, measure

STEPS = {
    "Repair a bicycle": ["Oil the chain and pump the tyres", "Replace the brake pads"],
    "Write a song": ["Find a melody for the chorus", "Rhyme the lines about waves"],
    "Paint portraits": ["Buy brushes, oils and a canvas", "Practise drawing the eyes"],
    "Hold a tournament": ["Draw up the fixtures of the teams", "Find referees and mark the pitch"],
}


def weighed(own: float, noise: float = 0.2) -> dict[str, dict[str, float]]:
    """Mean log p of every step after every task: `own` more after its own, a little noise elsewhere."""
    texts = [text for its in STEPS.values() for text in its]
    return {
        task: {
            text: -4.0 + (own if text in its else noise * ((number + place) % 3 - 1))
            for place, text in enumerate(texts)
        }
        for number, (task, its) in enumerate(STEPS.items())
    }


def test_a_model_that_knows_the_language_is_trusted() -> None:
    scale = measure(STEPS, weighed(1.5))
    assert scale.trust == 1.0
    assert scale.gain > 5 * scale.spread
    assert scale.content == pytest.approx(4.0 * 27 / 4.2, rel=0.2)


def test_a_model_that_gains_nothing_is_hardly_trusted() -> None:
    scale = measure(STEPS, weighed(0.0))
    assert scale.trust == 0.25
    assert abs(scale.gain) < scale.spread


def test_a_model_without_noise_has_a_scale_all_the_same() -> None:
    assert measure(STEPS, weighed(1.0, noise=0.0)).spread > 0


def test_nothing_is_known_of_an_unknown_language() -> None:
    assert UNKNOWN.trust == 0.0
    assert judging.fits(-50.0, UNKNOWN) == judging.fits(50.0, UNKNOWN) == judging.BENEFIT
    assert judging.concrete(1.0, UNKNOWN) == 1.0


def test_a_model_that_gains_twice_as_much_means_the_same_by_twice_the_gain() -> None:
    """The pass mark means the same for each model."""
    double = Scale(SURE.gain * 2, SURE.spread * 2, SURE.content * 2)
    for gain in (-3.0, 0.0, 2.0, 4.0, 9.0):
        assert judging.fits(2 * gain, double) == pytest.approx(judging.fits(gain, SURE))
        assert judging.concrete(60 + 2 * gain, double) == pytest.approx(judging.concrete(30 + gain, SURE))
