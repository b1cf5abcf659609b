"""What a person types as a goal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtui.goals import MAX_GOAL, parse_goal
from swarmtui.plaintext import many_lines
from swarmtui.plan.ops import MAX_TEXT, MAX_TITLE, Goal, check


def test_one_line() -> None:
    assert parse_goal("  Plan a  trip to Japan \n") == ("Plan a trip to Japan", "", "")


def test_the_first_line_is_the_title() -> None:
    title, detail, note = parse_goal("Plan a trip\n\nTwo adults.\r\nIn April.")
    assert (title, detail, note) == ("Plan a trip", "Two adults.\nIn April.", "")


@pytest.mark.parametrize("text", ["", "   ", "\n\t\n", "\u200b\u200b", "\x1b[31m\x1b[0m", "…!?"])
def test_empty(text: str) -> None:
    with pytest.raises(ValueError, match="empty"):
        parse_goal(text)


def test_too_long_names_both_counts() -> None:
    with pytest.raises(ValueError, match=r"10,000 characters and may have 4,000"):
        parse_goal("x" * 10_000)


def test_a_long_line_gives_its_first_sentence_to_the_title() -> None:
    text = "Plan a trip to Japan. " + "We like trains and food and temples. " * 20
    title, detail, note = parse_goal(text)
    assert title == "Plan a trip to Japan."
    assert detail == text.strip()
    assert "title" in note


def test_a_long_sentence_gives_its_first_words() -> None:
    title, detail, _ = parse_goal("word " * 100)
    assert title.endswith("word…")
    assert len(title) <= MAX_TITLE
    assert detail.startswith("word word")


def test_a_long_line_without_spaces_is_cut() -> None:
    title, detail, _ = parse_goal("旅" * 300)
    assert title == "旅" * (MAX_TITLE - 1) + "…"
    assert detail == "旅" * 300


@pytest.mark.parametrize("text", ["تخطيط رحلة إلى اليابان", "🗾✈️ 旅行 👩‍👩‍👧", "[/foo] [red]x[/] [link=http://a]b"])
def test_scripts_emoji_and_markup_stay_as_they_are(text: str) -> None:
    assert parse_goal(text) == (text, "", "")


def test_control_characters_are_left_out_and_told() -> None:
    title, _, note = parse_goal("Plan\x07 \x1b[31ma\x1b[0m trip\u202e!")
    assert title == "Plan a trip!"
    assert "left out" in note


def test_text_that_is_no_text() -> None:
    with pytest.raises(ValueError, match="UTF-8"):
        parse_goal("caf\udce9")


@given(st.text(max_size=5_000))
def test_every_goal_is_refused_or_fits(text: str) -> None:
    try:
        title, detail, _ = parse_goal(text)
    except ValueError:
        return
    assert 1 <= len(title) <= MAX_TITLE
    assert len(detail) <= MAX_TEXT <= MAX_GOAL
    assert "\n" not in title
    check(Goal(title=title, detail=detail))


@given(st.text(max_size=300))
def test_shown_text_has_nothing_that_moves_the_cursor(text: str) -> None:
    shown = many_lines(text)
    kept = "\n\u200c\u200d\u200e\u200f"
    assert all(c in kept or unicodedata.category(c) not in ("Cc", "Cs", "Cf", "Zl", "Zp") for c in shown)
    assert many_lines(shown) == shown
