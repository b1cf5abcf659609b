"""Prompts as data."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from swarmtui.agents.drafts import faults
from swarmtui.agents.prompting import PromptError, Prompts, as_clause, fill, is_small, sections, split_schema


def test_the_prompts_that_we_bring_load_and_their_examples_have_no_faults() -> None:
    prompts = Prompts.load()
    assert len({angle.name for angle in prompts.angles}) == len(prompts.angles) >= 5
    for angle in prompts.angles:
        for example in angle.examples:
            assert faults(example.steps, example.task, 3, [], []) == []


def test_a_user_file_needs_only_what_differs(tmp_path: Path) -> None:
    (tmp_path / "executor.toml").write_text('system = "Be brief."\n', "utf-8")
    mine, ours = Prompts.load(tmp_path), Prompts.load()
    assert mine.executor.system == "Be brief."
    assert mine.executor.work == ours.executor.work
    assert mine.decomposer == ours.decomposer


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("system = 3", "Expected `str`, got `int`"),
        ("sytem = 'x'", "unknown field `sytem`"),
        ("system = ", "Invalid value"),
        ("work = '$title costs $ 5'", r"work holds a \$ that starts no name \(write \$\$ for a dollar\)"),
        ("work = 'Do $titel'", r"work names \$titel, which nothing fills \(there are \$detail, "),
        ("small_work = ['$titel']", r"small_work names \$titel"),
        ("work = 'Do it'", r"work doesn't name \$title"),
        ("\xff", "codec can't decode"),
    ],
)
def test_a_faulty_user_file_is_named_with_its_fault(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "executor.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(PromptError, match=rf"executor\.toml: .*{says}"):
        Prompts.load(tmp_path)


def test_without_a_folder_of_ones_own_the_shipped_prompts_are_used(tmp_path: Path) -> None:
    assert Prompts.load(tmp_path / "prompts") == Prompts.load()
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(PromptError, match="file: Not a directory"):
        Prompts.load(tmp_path / "file")


def test_a_user_file_of_no_known_name_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "executer.toml").write_text("system = 'x'", "utf-8")
    with pytest.raises(PromptError, match=r"executer\.toml: there are no prompts of this name .*executor\.toml"):
        Prompts.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("angle = []", "length >= 1"),
        ("[[angle]]\nname = 'x'\nhint = 'x'\nexamples = []\nusual = ['Do $tusk']", r"usual names \$tusk"),
    ],
)
def test_angles_of_ones_own_are_looked_at_too(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "angles.toml").write_text(text, "utf-8")
    with pytest.raises(PromptError, match=rf"angles\.toml: .*{says}"):
        Prompts.load(tmp_path)


@pytest.mark.parametrize(
    ("title", "clause"),
    [
        ("Plan a trip", "plan a trip"),
        ("DIY shelves", "DIY shelves"),
        ("A trip.", "a trip"),
        ("東京へ行く", "東京へ行く"),
        ("", ""),
    ],
)
def test_a_title_goes_on_in_a_sentence(title: str, clause: str) -> None:
    assert as_clause(title) == clause


def test_lines_whose_places_are_empty_go() -> None:
    assert fill("Plan: $goal\nWithin: $path\nTask: $title", {"goal": "", "path": "", "title": "x"}) == "Task: x"


def test_what_is_put_in_is_not_looked_at_again() -> None:
    assert fill("Task: $title", {"title": "$goal ${x} {y} $"}) == "Task: $goal ${x} {y} $"


def test_long_parts_are_shortened_alike_and_short_ones_not() -> None:
    text = sections([("A", "short"), ("B", "b" * 5000), ("C", "c" * 5000)], 1000)
    assert "A:\nshort" in text
    assert len(text) < 1200
    assert text.count("b") > 200


def test_parts_that_join_others_leave_what_is_told_of_those_as_it_was() -> None:
    parts = [(f"Part {number}", f"{number}" * 300) for number in range(12)]
    texts = [sections(parts[:count], 2_400) for count in range(1, 13)]
    breaks = [before for before, after in itertools.pairwise(texts) if not after.startswith(before)]
    assert len(breaks) == 1
    assert all(len(text) <= 2_400 for text in texts)
    # Not even the least that is told of each fits.
    assert all(f"{number}" * 80 in sections(parts, 100) for number in range(10))


@pytest.mark.parametrize(
    ("name", "small"),
    [
        ("SmolLM2-135M-Instruct Q4_1", True),
        ("qwen2.5-0.5b-instruct-q8_0", True),
        ("Llama-3.2-1B", True),
        ("Llama-3.1-8B-Instruct-Q4_K_M", False),
        ("Mixtral 8x7B", False),
        ("scripted", False),
    ],
)
def test_small_models_are_told_by_their_names(name: str, small: bool) -> None:
    assert is_small(name) is small


def test_the_form_of_a_draft_follows_the_policy() -> None:
    short = split_schema((2, 4), ["write"], full=False)
    assert list(short["properties"]["steps"]["items"]["properties"]) == ["title", "detail"]
    assert short["properties"]["steps"]["maxItems"] == 4
    assert "needs" in split_schema((2, 4), ["write", "draw"], full=True)["properties"]["steps"]["items"]["properties"]
