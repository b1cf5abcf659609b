"""Plain looks at texts, in several languages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swarmtui.agents import wording


def test_same_words_in_another_order_are_the_same() -> None:
    assert wording.shared("Book the hotels in Kyoto", "In Kyoto, book hotel") == 1.0
    assert wording.shared("Book hotels", "Pack the bags") == 0.0


def test_unspaced_scripts_are_compared_too() -> None:
    assert wording.shared("会場を予約する", "会場を予約する") == 1.0
    assert wording.shared("会場を予約する", "ポスターを貼る") < 0.5


def test_a_cut_ends_after_a_sentence() -> None:
    text = "First sentence. Second one is here. Third is much longer than the others."
    assert wording.cut(text, 40) == "First sentence. Second one is here."
    assert wording.cut("short", 40) == "short"


def test_an_unfinished_sentence_is_dropped() -> None:
    assert wording.to_last_sentence("It is done. And then the") == "It is done."
    assert wording.to_last_sentence("no end at all") == "no end at all"


def test_a_lists_number_or_an_abbreviation_ends_no_sentence() -> None:
    assert wording.to_last_sentence("1. Buy flour.\n2.") == "1. Buy flour."
    assert wording.sentences("Ask Dr. Ito, e.g. by mail. Then wait.") == ["Ask Dr. Ito, e.g. by mail.", "Then wait."]


def test_sentences_of_unspaced_scripts_are_cut_too() -> None:
    text = "会場を予約する。ポスターを貼る。飲み物を"
    assert wording.to_last_sentence(text) == "会場を予約する。ポスターを貼る。"
    assert wording.cut(text, 12) == "会場を予約する。"
    assert wording.without_loops("やる。やる。やる。やる。終わり。") == "やる。やる。終わり。"


def test_loops_are_cut() -> None:
    assert wording.without_loops("a\nb\nb\nb\nb\nc") == "a\nb\nb\nc"
    assert wording.without_loops("Do it. Do it. Do it. Do it. Done.") == "Do it. Do it. Done."


def test_control_characters_go_and_lines_stay() -> None:
    assert wording.clean("a\x1b[31m\r\n\n\n\nb\x00 ") == "a[31m\n\nb"
    assert wording.one_line("a\n\tb\x07 c") == "a b c"


@given(st.text(), st.integers(1, 300))
def test_a_cut_never_exceeds_the_limit(text: str, limit: int) -> None:
    assert len(wording.cut(text, limit)) <= limit


@given(st.text(), st.text())
def test_shares_are_shares(first: str, second: str) -> None:
    assert 0.0 <= wording.shared(first, second) <= 1.0
    assert 0.0 <= wording.covered(first, second) <= 1.0
    wording.clean(first)
    wording.without_loops(first)
