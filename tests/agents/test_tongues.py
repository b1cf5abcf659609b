"""Which language a text is in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtui.agents.prompting import Neutral
from swarmtui.agents.settings import default_prompts
from swarmtui.agents.tongues import UNKNOWN, is_foreign, language_of, script_of

PROMPTS = default_prompts()
KNOWN = PROMPTS.languages
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
        ("Renovera en gammal träbåt", "Swedish"),
        ("Åbne et lille mejeri og sælge ost", "Danish"),
        ("Otevřít kavárnu před nádražím", "Czech"),
        ("Küçük bir fırın açmak için hazırlık", "Turkish"),
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


@pytest.mark.parametrize(
    ("title", "steps", "name"),
    [
        ("Open a small bakery", ["Choose a shop and sign the lease"], "English"),
        ("Preparar la boda", ["Enviar las invitaciones a los invitados"], "Spanish"),
        ("Aprire un bar sul lungomare", ["Scegliere il nome del locale", "Parlare con gli amici"], "Italian"),
        ("Ristrutturare un vecchio mulino", ["Book a venue for the party and the band"], "Italian"),
        ("Организовать переезд офиса", ["Выбрать транспортную компанию"], "Russian"),
        ("Organizar una exposición de fotografía", ["会場を予約して照明を確認する"], "Spanish"),
        ("Xyzzy", ["Plugh"], "English"),
        ("Digitise grandmother's recipes", ["Convert cups and ounces to grams"], "English"),
        ("Άνοιγμα φούρνου", ["Επιλογή καταστήματος"], ""),
    ],
)
def test_a_tasks_language_is_its_titles_else_that_of_all(title: str, steps: list[str], name: str) -> None:
    assert PROMPTS.language_of_task(title, steps).name == name


@pytest.mark.parametrize(
    ("name", "text", "foreign"),
    [
        ("French", "Weigh the leftovers for two weeks in the kitchen", True),
        ("French", "Trouver un local et négocier le loyer", False),
        ("English", "Book a hotel in São Paulo", False),
        ("English", "チケットをオンラインで販売する", True),
        ("Japanese", "Sign it", True),
        ("Japanese", "iPadを買う", False),
        ("", "Weigh the leftovers", False),
    ],
)
def test_a_step_in_another_language_is_noticed_if_it_is_clear(name: str, text: str, foreign: bool) -> None:
    assert is_foreign(text, BY_NAME.get(name, UNKNOWN), KNOWN) is foreign


@pytest.mark.parametrize("neutral", PROMPTS.scorer.neutral, ids=lambda each: each.language)
def test_neutral_tasks_are_in_their_language(neutral: Neutral) -> None:
    language = BY_NAME[neutral.language]
    for task, steps in neutral.steps.items():
        assert len(steps) == 2
        assert not any(is_foreign(text, language, KNOWN) for text in (task, *steps))


@given(st.text())
def test_any_text_has_some_script_and_some_language(text: str) -> None:
    assert isinstance(script_of(text), str)
    assert language_of(text, KNOWN) in (*KNOWN, language_of("", KNOWN))
