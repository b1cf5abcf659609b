"""Texts are compared with texts in their own language."""

from __future__ import annotations

import pytest

from swarmtui.agents.language import language_of, strange
from swarmtui.agents.prompting import Prompts

KNOWN = Prompts.load().scorer.neutral
BY_CODE = {each.language: each for each in KNOWN}


@pytest.mark.parametrize(
    ("title", "steps", "code"),
    [
        ("Open a small bakery", ["Choose a shop and sign the lease"], "en"),
        ("Eine Bäckerei in der Altstadt eröffnen", [], "de"),
        ("Ouvrir un café dans le quartier", [], "fr"),
        ("Preparar la boda", ["Enviar las invitaciones a los invitados"], "es"),
        ("Aprire un bar sul lungomare", ["Scegliere il nome del locale", "Parlare con gli amici"], "it"),
        ("Organizar um torneio de xadrez na escola", [], "pt"),
        ("Een fietstocht langs de Rijn plannen", [], "nl"),
        ("Måla om köket", ["Skrapa bort den gamla färgen"], "sv"),
        ("Otworzyć małą księgarnię", [], "pl"),
        ("東京でのコンサートを企画する", [], "ja"),
        ("Организовать переезд офиса", ["Составить список мебели и техники"], "ru"),
        ("Xyzzy", ["Plugh"], "en"),
        ("Digitise grandmother's recipes", ["Convert cups and ounces to grams"], "en"),
    ],
)
def test_languages_are_told_by_letters_and_little_words(title: str, steps: list[str], code: str) -> None:
    found = language_of(KNOWN, title, steps)
    assert found is BY_CODE[code]


def test_an_unknown_language_is_none_of_them() -> None:
    assert language_of(KNOWN, "Άνοιγμα φούρνου", ["Επιλογή καταστήματος"]) is None


def test_a_clear_title_decides_whatever_the_steps_are_in() -> None:
    steps = ["会場を予約して照明を確認する", "チケットをオンラインで販売する"]
    assert language_of(KNOWN, "Organizar una exposición de fotografía", steps) is BY_CODE["es"]


@pytest.mark.parametrize(
    ("code", "text", "wrong"),
    [
        ("fr", "Weigh the leftovers for two weeks", True),
        ("fr", "Offer small and large portions", False),
        ("fr", "Trouver un local et négocier le loyer", False),
        ("en", "Book a hotel in São Paulo", False),
        ("en", "チケットをオンラインで販売する", True),
        ("ja", "Sign it", True),
        ("ja", "iPadを買う", False),
    ],
)
def test_a_step_in_another_language_is_noticed_if_it_is_clear(code: str, text: str, wrong: bool) -> None:
    assert strange(KNOWN, BY_CODE[code], text) is wrong


def test_nothing_is_strange_where_the_language_is_unknown() -> None:
    assert not strange(KNOWN, None, "Weigh the leftovers")


@pytest.mark.parametrize("language", KNOWN, ids=lambda each: each.language)
def test_every_language_tells_its_own_reference_steps(language: object) -> None:
    assert language in KNOWN
    for task, steps in language.steps.items():  # type: ignore[attr-defined]
        assert len(steps) == 2
        assert not any(strange(KNOWN, language, text) for text in (task, *steps))  # type: ignore[arg-type]
