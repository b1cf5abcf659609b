"""Which language a text is in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtui.agents.settings import default_prompts
from swarmtui.agents.tongues import is_foreign, language_of, script_of

KNOWN = default_prompts().languages
BY_NAME = {language.name: language for language in KNOWN}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Plan a two-week trip to Japan", "English"),
        ("Ein Straßenfest für die Nachbarn organisieren", "German"),
        ("Organiser un voyage de deux semaines au Japon", "French"),
        ("Abrir una pequeña panadería en el barrio", "Spanish"),
        ("Scrivere un romanzo giallo ambientato a Venezia", "Italian"),
        ("Organizar uma festa de aniversário para os amigos", "Portuguese"),
        ("Een feest voor de buren in het park", "Dutch"),
        ("Zaplanować wycieczkę w góry dla całej rodziny", "Polish"),
        ("東京への三日間の旅行を計画する", "Japanese"),
        ("组织一次社区聚会", "Chinese"),
        ("작은 빵집을 열다", "Korean"),
        ("Открыть маленькую пекарню в городе", "Russian"),
        ("Відкрити маленьку пекарню у місті", "Ukrainian"),
        ("Kyoto 2026", ""),
        ("12345", ""),
    ],
)
def test_a_goals_language_is_told(text: str, name: str) -> None:
    assert language_of(text, KNOWN).name == name


def test_every_language_but_the_prompts_own_can_be_asked_for() -> None:
    for language in KNOWN[1:]:
        assert language.ask, language.name
        assert language.small, language.name
        assert language.small_work, language.name
        assert language.small_merge, language.name
        assert len(language.usual) >= 3, language.name


def test_an_answer_plainly_in_another_language_is_told() -> None:
    german, english, japanese = BY_NAME["German"], BY_NAME["English"], BY_NAME["Japanese"]
    assert is_foreign("Invite the neighbours to the party and rent a tent", german, KNOWN)
    assert is_foreign("Die Nachbarn zu dem Fest einladen", english, KNOWN)
    assert is_foreign("Invite the neighbours", japanese, KNOWN)
    assert not is_foreign("Die Nachbarn einladen; Getränke kaufen", german, KNOWN)


@pytest.mark.parametrize(
    "text", ["Visit the Café de Flore", "Rent a car in Rio de Janeiro", "Book Shinkansen tickets", "Paint", "7", ""]
)
def test_names_and_short_texts_are_not_called_foreign(text: str) -> None:
    assert not is_foreign(text, BY_NAME["English"], KNOWN)


def test_names_in_chinese_characters_are_at_home_in_japanese() -> None:
    assert not is_foreign("東京都庁", BY_NAME["Japanese"], KNOWN)


@given(st.text())
def test_any_text_has_some_script_and_some_language(text: str) -> None:
    assert isinstance(script_of(text), str)
    assert language_of(text, KNOWN) in (*KNOWN, language_of("", KNOWN))
