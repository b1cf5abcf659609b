"""From a model's answer to steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swarmtui.agents import drafts
from swarmtui.plan.ops import MAX_TITLE, Policy, Proposal, check

GOAL = "Plan a two-week trip to Japan"
GOOD = ["Book return flights and a rail pass", "Reserve hotels in Tokyo", "List the sights of each day"]
LAST = ("review", "check")


def found(*titles: str) -> list[str]:
    return drafts.faults(titles, GOAL, 3, ["Paint two coats and let them dry"], ["Buy travel insurance"])


def test_a_good_draft_has_no_faults() -> None:
    assert found(*GOOD) == []


def test_every_fault_is_named_with_its_step() -> None:
    assert found(*GOOD, "Reserve hotels in Tokyo") == ["step 4 repeats step 2"]
    assert found(*GOOD, GOAL) == ["step 4 says the task again"]
    assert found(*GOOD, "Plan the two-week trip to Japan carefully") == ["step 4 says the task again"]
    assert found(*GOOD, "Paint two coats and let them dry") == ["step 4 is copied from the example"]
    assert found(*GOOD, "Buy the travel insurance") == ["step 4 is planned elsewhere"]
    assert found(*GOOD[:2]) == ["fewer than 3 steps"]


def test_any_shape_of_answer_is_read() -> None:
    assert [step["title"] for step in drafts.read_steps({"steps": ["- Go ", {"title": "Stay."}, "", {"x": 1}, 3]})] == [
        "Go",
        "Stay",
        "3",
    ]
    for value in (None, {}, [], {"steps": None}, "text", 7):
        assert drafts.read_steps(value) == []


def test_mending_keeps_what_is_good_and_tops_up() -> None:
    steps = drafts.read_steps({"steps": [GOOD[0], GOOD[0], GOAL]})
    kept, added = drafts.mend(steps, GOAL, (3, 6), [], [], ["Prepare: $task", "Do: $task", "End: $task"])
    assert [step["title"] for step in kept] == [GOOD[0], f"Prepare: {GOAL}", f"Do: {GOAL}"]
    assert added == 2


def test_numbers_counted_from_one_become_indexes_of_earlier_steps() -> None:
    items = [{"title": "A b", "after": [1]}, {"title": "C d", "after": [1, 2, 9, "x"]}]
    steps = drafts.to_steps(items, Policy(), 0, LAST)
    assert [step.after for step in steps] == [(), (0,)]


def test_what_a_model_did_not_say_gets_a_sensible_value() -> None:
    items = [{"title": title} for title in ["Buy an oven", "Hire bakers and plan the menu", "Check the shop"]]
    first, second, last = drafts.to_steps(items, Policy(max_depth=3), 0, LAST)
    assert (first.atomic, second.atomic) == (True, False)
    assert last.after == (0, 1)
    assert first.needs == "write"


def test_skills_outside_the_policy_are_not_asked_for() -> None:
    items = [{"title": "A b", "needs": "fly"}, {"title": "C d", "needs": "draw"}]
    steps = drafts.to_steps(items, Policy(skills=("draw", "dance")), 0, LAST)
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
    made = drafts.to_steps(kept, Policy(), 0, LAST)
    assert 2 <= len(made) <= 6
    assert all(1 <= len(step.title) <= MAX_TITLE for step in made)
    check(Proposal(task=b"t" * 32, steps=made))
