"""Drafts by models that misbehave: what was copied or is in another language never stands."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from swarmtui.agents import AgentSettings, drafts
from swarmtui.agents.drafting import Drafter, Order
from swarmtui.agents.settings import default_prompts
from swarmtui.plan.ops import Proposal, check
from swarmtui.plan.state import Draft, Plan, Task

from . import making
from .told import Told

ANGLE = default_prompts().angles[0]
GOOD = ["Compare the rents of three shops", "Apply for a licence at the town hall", "Hire two bakers in June"]
SMALL, LARGE = "Tiny-135M", "Large-8B"


def answer(*titles: str) -> dict[str, Any]:
    return {"steps": [{"title": title, "detail": "", "atomic": False, "after": []} for title in titles]}


async def draft(
    model: Told, plan: Plan, task: Task | None = None, base: Draft | None = None, redraws: int = 3
) -> Proposal:
    drafter = Drafter(model, AgentSettings(name="ada", redraws=redraws))
    seeds = itertools.count(1)
    made = await drafter(Order(plan, task or plan.root, ANGLE, base), lambda _: None, lambda: next(seeds))
    check(made)
    return made


def titles(made: Proposal) -> list[str]:
    return [step.title for step in made.steps]


def bakery() -> tuple[Plan, Task]:
    """A plan that is split once, and the step that is to be split further."""
    plan = making.plan(title="Open a bakery in Leith")
    children = making.accept(plan, making.draft(plan, titles=["Find a place with an oven", "Write the menu"]))
    for child in children:
        child.leaf = False
    return plan, children[0]


COPIES = {
    "the example": ANGLE.examples[0].steps,
    "another angle's example": default_prompts().angles[2].examples[1].steps,
    "the task": ["Find a place with an oven", "Find the place with an oven", "Find, with an oven, the place"],
    "the goal": ["Open a bakery in Leith", "Open the bakery in Leith", "Bakery in Leith: open it"],
    "a sibling": ["Write the menu", "The menu: write", "Write a menu"],
    "itself": ["Ask the agent about rents", "Ask the agent about the rents", "About rents ask the agent"],
    "nothing": ["Step", "...", "[insert step]"],
}


@pytest.mark.parametrize("name", [SMALL, LARGE])
@pytest.mark.parametrize("what", COPIES)
async def test_a_copy_is_refused_and_drawn_again(what: str, name: str) -> None:
    plan, task = bakery()
    model = Told(answer(*COPIES[what]), answer(*GOOD), name=name)
    made = titles(await draft(model, plan, task))
    assert [title for title in made if title in GOOD] == GOOD
    # A step that says itself three times may stand once.
    assert len([title for title in made if title in COPIES[what]]) <= (1 if what == "itself" else 0)
    assert len(model.requests) >= 2
    assert model.requests[0].seed != model.requests[1].seed


@pytest.mark.parametrize("name", [SMALL, LARGE])
@pytest.mark.parametrize("what", COPIES)
async def test_of_a_model_that_only_copies_nothing_stands(what: str, name: str) -> None:
    plan, task = bakery()
    model = Told(answer(*COPIES[what]), name=name)
    made = await draft(model, plan, task)
    assert len(model.requests) == 4
    assert len(made.steps) >= plan.policy.fan_out[0]
    usual = [drafts.Template(text).substitute(task=task.title) for text in ANGLE.usual]
    assert [title for title in titles(made) if title not in usual] == (COPIES[what][:1] if what == "itself" else [])
    assert "usual steps were added" in made.rationale


async def test_a_capable_model_hears_what_was_wrong() -> None:
    plan, task = bakery()
    model = Told(answer("Write the menu", *GOOD[:2]), answer(*GOOD), name=LARGE)
    await draft(model, plan, task)
    assert "An earlier answer was refused: step 1 is planned elsewhere." in model.requests[1].prompt
    assert "refused" not in model.requests[0].prompt


@pytest.mark.parametrize("name", [SMALL, LARGE])
async def test_a_draft_in_another_language_is_drawn_again(name: str) -> None:
    plan = making.plan(title="Eine kleine Bäckerei in der Stadt eröffnen")
    german = [
        "Die Mieten von drei Läden vergleichen",
        "Beim Rathaus die Genehmigung einholen",
        "Zwei Bäcker für den Juni einstellen",
    ]
    model = Told(answer(*GOOD), answer(*german), name=name)
    assert titles(await draft(model, plan))[:3] == german
    assert "Antworte auf Deutsch." in model.requests[0].prompt


async def test_a_small_model_that_knows_no_german_gets_german_steps() -> None:
    plan = making.plan(title="Eine kleine Bäckerei in der Stadt eröffnen")
    made = await draft(Told(answer(*GOOD), name=SMALL), plan)
    assert titles(made)[0] == "Vorbereiten: Eine kleine Bäckerei in der Stadt eröffnen"


@pytest.mark.parametrize("name", [SMALL, LARGE])
async def test_a_refinement_that_changes_nothing_is_refused(name: str) -> None:
    plan = making.plan()
    base = making.draft(plan, titles=GOOD)
    better = [*GOOD[:2], "Order flour for the first two weeks"]
    model = Told(answer(*GOOD), answer(*better), name=name)
    made = await draft(model, plan, base=base)
    assert titles(made) != GOOD
    assert better[2] in titles(made)
    assert made.base == base.op.id


async def test_steps_of_several_answers_are_gathered_from_a_small_model() -> None:
    plan = making.plan()
    model = Told(
        answer(GOOD[0], "Bread", "Open a bakery"), answer(*GOOD[1:]), answer("Print a menu of ten breads"), name=SMALL
    )
    made = await draft(model, plan)
    assert titles(made) == [*GOOD, "Print a menu of ten breads"]
    assert len(model.requests) == 3


async def test_notes_and_goal_are_told() -> None:
    plan, task = bakery()
    for name in (SMALL, LARGE):
        model = Told(answer(*GOOD, "Print a menu of ten breads"), name=name)
        await draft(model, plan, task)
        assert "Open a bakery in Leith" in model.requests[0].prompt
        assert "lace with an oven" in model.requests[0].prompt
