"""Choosing a model: the list and its filter, what can't be chosen, and who gets the chosen one."""

from __future__ import annotations

import pytest
from textual.widgets import OptionList

from swarmtui.swarm import SwarmError
from swarmtui.ui.screens.picker import row
from swarmtui.view import ModelChoice

from .driving import NARROW, WIDE, Driver, drive
from .sample import FakeSwarm, agent, choice, japan, view_of

LLAMA = "/models/Llama-3.1-8B-Instruct.gguf"


async def opened(d: Driver, *keys: str) -> None:
    """Press keys that open the picker, and wait for the models."""
    await d.press(*keys)
    await d.until(lambda: d.screen == "ModelPicker" and "looking for" not in d.text())
    await d.settle()


@pytest.mark.parametrize("size", [NARROW, WIDE])
def test_the_list_shows_what_there_is_and_what_speaks_against_it(size: tuple[int, int]) -> None:
    async def scenario(d: Driver) -> None:
        await opened(d, "m")
        text = d.text()
        assert "Model of new agents" in text
        lines = {
            name: line for line in text.splitlines() for name in ("Llama-3.1", "Llama-3.3", "half") if name in line
        }
        assert all(word in lines["Llama-3.1"] for word in ("Q4_K_M", "4.7 GB", "6.1 GB"))
        assert "too large: needs 46 GB of 25 GB" in lines["Llama-3.3"]
        assert "truncated" in lines["half"]
        assert "bundled · context 8,192 tokens" in text
        assert [d.app.screen.query_one(OptionList).get_option_at_index(i).disabled for i in range(6)] == [
            False,
            False,
            False,
            True,
            True,
            False,
        ]
        await d.press("down", "down")
        assert "Ollama · context 131,072 tokens · no chat template" in d.text()
        await d.press("escape")
        assert d.screen == "MainScreen" and not d.swarm.asked

    drive(scenario, view_of(japan()), size)


def test_typing_narrows_and_enter_chooses() -> None:
    async def scenario(d: Driver) -> None:
        await opened(d, "m", *"q4 lm")
        text = d.text()
        assert "Llama-3.1" in text and "qwen3" not in text and "SmolLM2" in text
        await d.press("down", "enter")
        assert d.swarm.asked == [("use_model", LLAMA, "")]
        assert d.toasts() == ["Loading Llama-3.1-8B-Instruct …", "use_model is done"]

    drive(scenario, view_of(japan()))


def test_what_cant_be_used_cant_be_chosen() -> None:
    async def scenario(d: Driver) -> None:
        await opened(d, "m", *"70b")
        assert "1 model can't be used" in d.text()
        await d.press("enter")
        assert d.screen == "ModelPicker" and not d.swarm.asked
        await d.press("ctrl+u", "down", "up", "pagedown")
        for _ in range(3):
            await d.press("backspace")
        await d.press(*"zzz")
        assert "no model is called that" in d.text()
        await d.press("enter", "escape")
        assert not d.swarm.asked

    drive(scenario, view_of(japan()))


@pytest.mark.parametrize("typed", ["http://192.168.1.7:8080/v1#qwen3:4b", "~/models/mine.gguf"])
def test_a_path_or_an_address_can_be_typed(typed: str) -> None:
    async def scenario(d: Driver) -> None:
        await opened(d, "m")
        await d.type(typed)
        assert "as typed" in d.text()
        await d.press("enter")
        assert d.swarm.asked == [("use_model", typed, "")]

    drive(scenario, view_of(japan()))


def test_an_agent_gets_a_model_of_its_own() -> None:
    async def scenario(d: Driver) -> None:
        await opened(d, "2", "g", "down", "m")
        name = d.app.main.agents.agent().name
        assert f"Model of {name}" in d.text()
        await d.press("down", "enter")
        assert d.swarm.asked == [("use_model", LLAMA, d.app.main.agents.agent().peer)]

    drive(scenario, view_of(japan(), agents=(agent("ada", "decomposer"), agent("bob", "scorer"))))


def test_who_has_no_model_cant_get_another() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("2", "m")
        assert d.screen == "MainScreen"
        assert d.toasts() == ["you uses no model."]

    drive(scenario, view_of(japan(), agents=(agent("you", "operator", model=""),)))


def test_the_form_of_a_new_agent_has_the_same_list() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("S")
        await d.press("down")
        assert "the swarm's model   enter: choose" in d.text()
        await opened(d, "enter")
        assert "New scorer: model" in d.text() and "as other new agents" in d.text()
        await d.press("down", "down", "enter")
        assert "Llama-3.1-8B-Instruct" in d.text()
        await d.press("enter")
        assert d.swarm.asked == [("add_agent", "scorer", "", "", LLAMA, ())]
        # Chosen by mistake: one key takes it back.
        await d.press("S", "down")
        await opened(d, "space")
        await d.press("down", "enter", "up", "backspace", "down", "enter")
        assert d.swarm.asked[1] == ("add_agent", "scorer", "", "", "", ())

    drive(scenario, view_of(japan()))


def test_a_list_that_fails_is_told() -> None:
    swarm = FakeSwarm(view_of(japan()))
    swarm.models_error = OSError("disk on fire")

    async def scenario(d: Driver) -> None:
        await opened(d, "m")
        assert "The models can't be listed: disk on fire" in d.toasts()

    drive(scenario, swarm=swarm)


def test_a_start_that_fails_for_its_model_can_be_tried_with_another() -> None:
    swarm = FakeSwarm()
    swarm.start_error = SwarmError("the model x can't be used: truncated", "get the file again", another_model=True)

    async def scenario(d: Driver) -> None:
        await d.until(lambda: d.screen == "FailedScreen")
        await d.settle()
        assert "truncated" in d.text() and "m another model" in d.text()
        await opened(d, "m")
        await d.press("escape")
        assert d.screen == "FailedScreen"
        await opened(d, "m")
        await d.press("down", "enter")
        await d.until(lambda: d.app.started)
        assert swarm.models_tried == ["", LLAMA]
        await d.until(lambda: d.screen == "GoalForm")

    drive(scenario, swarm=swarm)


def test_other_failures_offer_no_model() -> None:
    swarm = FakeSwarm()
    swarm.start_error = SwarmError("no network")

    async def scenario(d: Driver) -> None:
        await d.until(lambda: d.screen == "FailedScreen")
        await d.press("m")
        assert d.screen == "FailedScreen" and "another model" not in d.text()

    drive(scenario, swarm=swarm)


def test_agents_of_different_models_are_told_apart() -> None:
    mixed = (agent("ada", "decomposer", model="qwen3:4b"), agent("bob", "scorer", model="Llama-3.1-8B-Instruct"))

    async def scenario(d: Driver) -> None:
        assert "qwen3:4b" in d.text() and "Llama-3.1-8B" in d.text()
        await d.change(agents=(mixed[0], agent("bob", "scorer", model="qwen3:4b")))
        assert "qwen3:4b" not in d.text().split("3 Detail")[0]

    drive(scenario, view_of(japan(), agents=mixed))


@pytest.mark.parametrize("width", [100, 120])
def test_a_models_name_and_figures_are_whole_or_not_there(width: int) -> None:
    busy = {"doing": "drafting", "subject": "A trip of two weeks to Japan", "tokens_per_second": 14.0}
    mixed = (agent("ada", "decomposer", **busy), agent("bob", "decomposer", model="scripted", **busy))

    async def scenario(d: Driver) -> None:
        bob = next(line for line in d.text().splitlines() if " D bob" in line)
        ada = next(line for line in d.text().splitlines() if " D ada" in line)
        assert "  SmolLM2-135M-In… │" in ada
        assert bob.count("…") == 1 and "  scripted " in bob

    drive(scenario, view_of(japan(), agents=mixed), (width, 36))


@pytest.mark.parametrize("name", ["[/foo] [red]x", "\x1b[2Jx", "旅行" * 40, "a\nb", ""])
@pytest.mark.parametrize("problem", ["", "truncated\x1b[2J" * 9])
def test_foreign_names_are_only_text(name: str, problem: str) -> None:
    drawn = row(choice(name, problem=problem), 60)
    assert drawn.cell_length == 60
    assert "\x1b" not in drawn.plain and "\n" not in drawn.plain
    assert row(ModelChoice(spec="", name=name, source="x"), 60).cell_length == 60
