"""The marks, from likelihoods made by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtui.agents import judging
from swarmtui.agents.judging import EMPHASES, Emphasis, Gains, Verdict
from swarmtui.plan.ops import Marks

TASK = "Open a small bakery"
STEPS = [
    "Choose a shop and sign the lease",
    "Get the food licence and the health inspection",
    "Buy ovens, mixers and shelving",
    "Hire two people and plan the opening week menu",
]
LONG_VERBS = ("Sign", "Order", "Repair", "Print", "Measure", "Hire", "Compare", "Photograph", "Inspect")
LONG_THINGS = (
    "lease for the corner shop",
    "steam oven and the mixers",
    "shelves behind the counter",
    "labels with all allergens",
    "doors for the new freezer",
    "baker for the early shift",
    "flour prices of four mills",
    "rolls and cakes for flyers",
    "kitchen with a food officer",
)
GOOD, STRANGE = 1.0, 0.1
"""Gains per token of a step that belongs to its task, and of one that doesn't."""


def judged(
    steps: list[str],
    gains: list[float],
    cover: float = 1.2,
    emphasis: Emphasis | None = None,
    after: dict[tuple[int, int], float] | None = None,
    pass_mark: float = 60,
) -> Verdict:
    alone = tuple(-6.5 for _ in steps)
    given_goal = tuple(-6.5 + gain for gain in gains)
    found = Gains(given_goal, alone, cover, after or {})
    return judging.by_likelihood(TASK, steps, found, emphasis, pass_mark=pass_mark)


def test_a_good_list_passes_and_nothing_is_said_against_it() -> None:
    verdict = judged(STEPS, [GOOD] * 4)
    assert verdict.marks.mean >= 60
    assert verdict.critique == ""


@pytest.mark.parametrize(
    ("steps", "gains", "said"),
    [
        ([*STEPS[:3], STEPS[0]], [GOOD] * 4, "Step 4 repeats step 1."),
        ([*STEPS[:3], TASK], [GOOD] * 3 + [4.0], "Step 4 only says the task again."),
        ([*STEPS[:2], "Get started", "Improve things"], [GOOD] * 2 + [STRANGE] * 2, 'Step 3 ("Get started") is vague'),
        ([*STEPS[:2], "Book a venue with three rooms", "Record the interviews with two microphones"],
         [GOOD] * 2 + [STRANGE] * 2, 'Step 3 ("Book a venue with three rooms") has little to do with the task.'),
        (STEPS[:2], [GOOD] * 2, "Too few steps"),
    ],
)  # fmt: skip
def test_every_flaw_fails_and_is_named(steps: list[str], gains: list[float], said: str) -> None:
    verdict = judged(steps, gains)
    assert verdict.marks.mean < 60
    assert said in verdict.critique


def test_a_repeat_in_other_words_costs_and_is_named() -> None:
    """Each is much likelier as another way to say the other than as another way to say the rest."""
    steps = [*STEPS[:3], "Obtain permission to sell food and have the hygiene checked"]
    after = {(i, j): -5.0 for i in range(4) for j in range(4) if i != j}
    assert judged(steps, [GOOD] * 4, after=after).marks == judged(steps, [GOOD] * 4).marks
    after |= {(1, 3): -4.0, (3, 1): -4.0}
    verdict = judged(steps, [GOOD] * 4, after=after)
    assert verdict.critique == "Step 4 seems to say the same as step 2."
    assert verdict.marks.distinct < 40


def test_a_long_list_is_judged_by_more_than_its_two_weakest_steps() -> None:
    """Of nine steps the weakest three count."""
    steps = [f"{verb} the {thing}" for verb, thing in zip(LONG_VERBS, LONG_THINGS, strict=True)]
    marks = [judged(steps, [GOOD] * (9 - weak) + [STRANGE] * weak).marks.specific for weak in (0, 2, 3, 4)]
    assert marks[0] > marks[1] > marks[2]
    assert marks[1] > 100 * (0.3 * 7 / 9) ** 2 + 5
    assert judged(steps[:8], [GOOD] * 6 + [STRANGE] * 2).marks.specific < marks[1]


def test_scorers_differ_in_what_they_look_at() -> None:
    steps, gains = [*STEPS[:3], "Book a venue with three rooms"], [GOOD] * 3 + [STRANGE]
    marks = {emphasis: judged(steps, gains, emphasis=emphasis).marks for emphasis in EMPHASES}
    assert len({mark.mean for mark in marks.values()}) == 3
    assert marks["specific"].specific < marks["distinct"].specific


def test_three_scorers_look_at_all_three() -> None:
    peers = ["ada", "bob", "cleo"]
    assert {judging.emphasis_of(peer, peers) for peer in peers} == set(EMPHASES)
    assert {judging.emphasis_of(peer, set(peers) - {peer}) for peer in peers} == set(EMPHASES), "whoever counts itself"


def test_what_has_no_fault_and_does_not_pass_is_told_what_it_lacks() -> None:
    gains = [GOOD] * 3 + [0.3]
    assert judged(STEPS, gains).critique == ""
    assert judged(STEPS, gains, pass_mark=90).critique.startswith(f'Step 4 ("{STEPS[3]}") belongs least surely')
    assert judged(STEPS, gains, cover=-1.0).critique.endswith("something is missing.")
    close = [*STEPS[:3], "Choose a lease and sign a policy"]
    assert judged(close, [GOOD] * 4, pass_mark=100).critique == "Steps 1 and 4 are close to each other."


def test_written_marks_are_corrected_by_what_is_plain() -> None:
    wild = Marks(specific=90, distinct=100, complete=100)
    verdict = judging.by_word(TASK, [STEPS[0], STEPS[0]], wild, "Very good.", "specific")
    assert verdict.marks.distinct < 40
    assert verdict.marks.complete < 40
    assert verdict.critique == "Step 2 repeats step 1. Too few steps: something is missing. Very good."


def test_written_marks_under_the_plans_own_pass_mark_come_with_a_word() -> None:
    fair = Marks(specific=70, distinct=80, complete=75)
    assert judging.by_word(TASK, STEPS, fair, "", None).critique == ""
    assert judging.by_word(TASK, STEPS, fair, "", None, pass_mark=90).critique == (
        "The steps could say more exactly what to do."
    )


@given(
    st.lists(st.text(min_size=1, max_size=60), min_size=2, max_size=16),
    st.text(min_size=1, max_size=60),
    st.floats(-60, 0),
    st.floats(-60, 0),
    st.sampled_from(EMPHASES),
)
def test_marks_stay_marks_whatever_the_texts(
    steps: list[str], title: str, first: float, second: float, emphasis: Emphasis
) -> None:
    gains = Gains(tuple(first for _ in steps), tuple(second for _ in steps), first - second)
    verdict = judging.by_likelihood(title, steps, gains, emphasis)
    marks = verdict.marks
    assert verdict.critique or marks.mean >= 60, "nothing is turned down without a word"
    assert all(0 <= mark <= 100 for mark in (marks.specific, marks.distinct, marks.complete))
