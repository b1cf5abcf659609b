"""What is left of an answer without what a model says around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtui.agents.prose import items_of, plain, starts_with, tidied, unmarked
from swarmtui.agents.settings import default_prompts

PROMPTS = default_prompts().executor
TITLE = "Book the flights"


def bare(text: str) -> str:
    return plain(text, PROMPTS.openers, PROMPTS.closers, TITLE)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Sure! Here is a plan:\n\n- Fly in May", "- Fly in May"),
        ("Certainly.\nHere's the checklist:\n1. Fly in May", "1. Fly in May"),
        ("Sure, here you go! Fly in May with ANA.", "Fly in May with ANA."),
        ("## Book the flights\n\nFly in May.", "Fly in May."),
        ("**Book the flights:**\nFly in May.", "Fly in May."),
        ("```markdown\n- Fly in May\n```", "- Fly in May"),
        ("Fly in May. Let me know if you need more!", "Fly in May."),
        ("Fly in May.\n\nI hope this helps!", "Fly in May."),
        ("Fly in May.\n\nGood luck with your trip!", "Fly in May."),
        ("Natürlich! Hier ist die Liste:\n- Im Mai fliegen", "- Im Mai fliegen"),
        ("もちろんです。\n- 五月に飛ぶ", "- 五月に飛ぶ"),
        ("Book the flights of ANA in May.", "Book the flights of ANA in May."),
        ("Sure-footed guides cost more.", "Sure-footed guides cost more."),
        ("Greater Tokyo has two airports.", "Greater Tokyo has two airports."),
        ("", ""),
        ("Sure!", ""),
    ],
)
def test_greeting_heading_fence_and_leave_go(text: str, left: str) -> None:
    assert bare(text) == left


def test_only_whole_words_begin_a_sentence() -> None:
    assert starts_with("Sure, why not", ["sure"])
    assert not starts_with("Surely", ["sure"])
    assert starts_with("“Here’s the list", ["here's"])
    assert starts_with("もちろんです", ["もちろん"])


def test_marks_of_lists_and_emphasis_go() -> None:
    for line in (
        "- Fly",
        "* Fly",
        "1. **Fly**",
        "2) Fly",
        "[ ] Fly",
        "- [x] Fly",
        "## Fly",
        "☐ Fly",
        "`Fly`",
        "• Fly**",
    ):
        assert unmarked(line) == "Fly", line
    assert unmarked("3 days in Kyoto") == "3 days in Kyoto"


def test_an_answer_is_its_list_or_its_sentences() -> None:
    assert items_of("To begin:\n1. Fly in May.\n2. Sleep in Kyoto", was_cut=False) == ["Fly in May.", "Sleep in Kyoto"]
    assert items_of("Fly in May. Sleep in Kyoto.", was_cut=False) == ["Fly in May.", "Sleep in Kyoto."]
    assert items_of("1. Fly in May.\n2. **Hotels:**\n3.\n4. Sleep", was_cut=False) == ["Fly in May.", "Sleep"]


def test_the_torn_end_of_an_answer_that_was_cut_goes() -> None:
    assert items_of("1. Fly in May.\n2. Sleep in the", was_cut=True) == ["Fly in May."]
    assert items_of("Fly in May. Sleep in the", was_cut=True) == ["Fly in May."]
    assert items_of("1. Fly in May.\n2. Sleep in Kyoto.", was_cut=True) == ["Fly in May.", "Sleep in Kyoto."]
    assert items_of("五月に飛ぶ。京都に", was_cut=True) == ["五月に飛ぶ。"]


def test_a_point_stands_by_itself() -> None:
    told = "Plan a trip to Japan Book the flights"
    assert tidied("Next, compare three airlines.", told, PROMPTS.links) == "Compare three airlines."
    assert tidied("To book the flights, start with May.", told, PROMPTS.links) == "Start with May."
    assert tidied("To be safe, insure them.", told, PROMPTS.links) == "To be safe, insure them."
    assert tidied("Next door is cheaper.", told, PROMPTS.links) == "Next door is cheaper."


@given(st.text(), st.booleans())
def test_whatever_was_written_is_taken_apart(text: str, was_cut: bool) -> None:
    for item in items_of(bare(text), was_cut):
        assert item.strip()
        assert "\n" not in item
        tidied(item, TITLE, PROMPTS.links)
