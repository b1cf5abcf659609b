"""From a model's answer to steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtui.agents import drafts
from swarmtui.agents.settings import default_prompts
from swarmtui.plan.ops import MAX_TITLE, Policy, Proposal, check

GOAL = "Plan a two-week trip to Japan"
GOOD = ["Book return flights and a rail pass", "Reserve hotels in Tokyo", "List the sights of each day"]
PROMPTS = default_prompts().decomposer


def found(*titles: str) -> list[str]:
    return drafts.faults(titles, GOAL, 3, ["Paint two coats and let them dry"], ["Buy travel insurance"])


def test_a_good_draft_has_no_faults() -> None:
    assert found(*GOOD) == []


def test_every_fault_is_named_with_its_step() -> None:
    assert found(*GOOD, "Reserve hotels in Tokyo") == ["step 4 repeats step 2"]
    assert found(*GOOD, GOAL) == ["step 4 says the task again"]
    assert found(*GOOD, "Plan the two-week trip to Japan carefully") == ["step 4 says the task again"]
    assert found(*GOOD, "Planning a two-week trip") == ["step 4 says the task again"]
    assert found(*GOOD[1:], "Book the flights to Japan for two weeks") == []
    assert found(*GOOD, "Paint two coats and let them dry") == ["step 4 is copied from the example"]
    assert found(*GOOD, "Buy the travel insurance") == ["step 4 is planned elsewhere"]
    assert found(*GOOD, "Pack the bags before the end of the") == ["step 4 breaks off"]
    assert found(*GOOD, "Den Zug buchen und") == ["step 4 breaks off"]
    assert found(*GOOD, "Have the neighbour look in") == []
    assert found(*GOOD[:2]) == ["fewer than 3 steps"]


def test_any_shape_of_answer_is_read() -> None:
    assert [step["title"] for step in drafts.read_steps({"steps": ["- Go ", {"title": "Stay."}, "", {"x": 1}, 3]})] == [
        "Go",
        "Stay",
        "3",
    ]
    for value in (None, {}, [], {"steps": None}, "text", 7):
        assert drafts.read_steps(value) == []


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("1. Book flights", "Book flights"),
        ("1.1-3: Travel planning", "Travel planning"),
        ("Step 2: pack the bags", "Pack the bags"),
        ("**Book** a hotel", "Book a hotel"),
        ("2018-04-30: Pack the bags", "Pack the bags"),
        ("3 days in Kyoto", "3 days in Kyoto"),
        ("24 hours of music", "24 hours of music"),
        ("Étape 1 : réserver l'hôtel", "Réserver l'hôtel"),
    ],
)
def test_numbers_and_noise_before_a_title_go(written: str, title: str) -> None:
    assert drafts.read_steps({"steps": [written]})[0]["title"] == title


def test_what_follows_a_colon_in_a_title_is_its_detail() -> None:
    (step,) = drafts.read_steps({"steps": [{"title": "Plan the budget: count flights, hotels and food", "detail": ""}]})
    assert (step["title"], step["detail"]) == ("Plan the budget", "count flights, hotels and food")


def test_a_torn_or_empty_detail_is_left_out() -> None:
    torn = (
        "Flights in May are cheap. "
        + "And hotels that are far from the centre are cheaper than those near the station of the"
    )
    open_end = "Start early, 2. Book the rental car"
    details = [
        torn,
        "x" * 130,
        "Book flights!",
        "Compare three airlines by price and luggage.",
        "Look here, then,",
        open_end,
    ]
    found = drafts.read_steps({"steps": [{"title": "Book flights", "detail": detail} for detail in details]})
    assert [step["detail"] for step in found] == ["Flights in May are cheap.", "", "", details[3], "", "Start early"]


def test_order_is_told_by_the_words_where_a_model_does_not_say_it() -> None:
    titles = ["Choose a venue in town", "Bake a chocolate cake", "Decorate the venue", "Review the whole list"]
    steps = drafts.to_steps([{"title": title} for title in titles], Policy(), "Hold a party", 0, PROMPTS)
    assert [step.after for step in steps] == [(), (), (0,), (0, 1, 2)]


def test_the_goals_own_words_make_no_order() -> None:
    titles = ["Choose the date of the party", "Invite friends to the party"]
    steps = drafts.to_steps([{"title": title} for title in titles], Policy(), "Hold a party", 0, PROMPTS)
    assert [step.after for step in steps] == [(), ()]


def test_the_skill_is_told_by_the_words_where_a_model_does_not_say_it() -> None:
    titles = ["Compare the prices of three halls", "Write the invitation", "Code the sign-up page"]
    policy = Policy(skills=("write", "research", "code"))
    steps = drafts.to_steps([{"title": title} for title in titles], policy, "Hold a party", 0, PROMPTS)
    assert [step.needs for step in steps] == ["research", "write", "code"]


def test_mending_keeps_what_is_good_and_tops_up() -> None:
    steps = drafts.read_steps({"steps": [GOOD[0], GOOD[0], GOAL]})
    kept, added = drafts.mend(steps, GOAL, (3, 6), [], [], ["Prepare: $task", "Do: $task", "End: $task"])
    assert [step["title"] for step in kept] == [GOOD[0], f"Prepare: {GOAL}", f"Do: {GOAL}"]
    assert added == 2


def test_numbers_counted_from_one_become_indexes_of_earlier_steps() -> None:
    items = [{"title": "A b", "after": [1]}, {"title": "C d", "after": [1, 2, 9, "x"]}]
    steps = drafts.to_steps(items, Policy(), GOAL, 0, PROMPTS)
    assert [step.after for step in steps] == [(), (0,)]


def test_what_a_model_did_not_say_gets_a_sensible_value() -> None:
    items = [{"title": title} for title in ["Buy an oven", "Hire bakers and plan the menu", "Check the shop"]]
    first, second, last = drafts.to_steps(items, Policy(max_depth=3), GOAL, 0, PROMPTS)
    assert (first.atomic, second.atomic) == (True, False)
    assert last.after == (0, 1)
    assert first.needs == "write"


def test_skills_outside_the_policy_are_not_asked_for() -> None:
    items = [{"title": "A b", "needs": "fly"}, {"title": "C d", "needs": "draw"}]
    steps = drafts.to_steps(items, Policy(skills=("draw", "dance")), GOAL, 0, PROMPTS)
    assert [step.needs for step in steps] == ["draw", "draw"]


@given(
    st.lists(
        st.one_of(
            st.text(max_size=400),
            st.fixed_dictionaries({"title": st.text(max_size=400), "after": st.lists(st.integers())}),
        ),
        max_size=20,
    ),
    st.text(min_size=1, max_size=300),
)
def test_whatever_a_model_writes_becomes_a_valid_proposal(answer: list[object], goal: str) -> None:
    steps = drafts.read_steps({"steps": answer})[:6]
    kept, _ = drafts.mend(steps, goal, (2, 6), [], [], ["Prepare: $task", "Do: $task", "End: $task"])
    made = drafts.to_steps(kept, Policy(), goal, 0, PROMPTS)
    assert 2 <= len(made) <= 6
    assert all(1 <= len(step.title) <= MAX_TITLE for step in made)
    check(Proposal(task=b"t" * 32, steps=made))
