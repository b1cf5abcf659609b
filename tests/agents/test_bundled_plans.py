"""A small plan by the bundled model: whatever it writes, what stands is within the rules."""

from __future__ import annotations

import itertools

import pytest

from swarmtui.agents import AgentSettings
from swarmtui.agents.drafting import Drafter, Order
from swarmtui.agents.results import Checks, left_out
from swarmtui.agents.work import Worker
from swarmtui.plan.ops import Policy, Result, check

from . import making
from .test_bundled import engine

pytestmark = pytest.mark.model


def nobody(text: str) -> None:
    """Hears what the model writes."""


async def test_draft_result_and_merge_stand_up_to_the_checks() -> None:
    plan = making.plan(Policy(fan_out=(2, 3)), "Plan a two-week trip to Japan")
    settings = AgentSettings(name="ada", redraws=1, work_tokens=60)
    seeds = itertools.count(1)
    async with engine() as model:
        order = Order(plan, plan.root, settings.prompts.angles[0])
        made = await Drafter(model, settings)(order, nobody, lambda: next(seeds))
        check(made)
        titles = [step.title for step in made.steps]
        assert 2 <= len(titles) <= 3
        children = making.accept(plan, making.draft(plan, titles=titles))
        worker = Worker(model, settings)
        text = await worker(plan, children[0], nobody, 3, 0)
        assert all(line.startswith("- ") for line in text.split("\n"))
        assert "it is empty" not in Checks.of(plan, children[0], settings.prompts).faults(text)
        for child in children:
            making.result(child, text)
        merged = await worker(plan, plan.root, nobody, 4, 0)
    parts = [
        (child.title, child.result.body.output)
        for child in children
        if child.result and isinstance(child.result.body, Result)
    ]
    assert left_out(merged, parts) == []
