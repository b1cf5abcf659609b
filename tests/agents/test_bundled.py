"""The agents' work with the bundled model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio

from swarmtui.agents import AgentSettings, judging
from swarmtui.agents.judge import Judge
from swarmtui.agents.work import Worker
from swarmtui.llm import models
from swarmtui.llm.client import EngineModel

from . import making

pytestmark = pytest.mark.model
SPLITS = Path(__file__).parent.parent / "data" / "splits_few.jsonl"


class Split(msgspec.Struct):
    goal: str
    steps: list[str]
    flaw: str | None = None


@asynccontextmanager
async def engine() -> AsyncIterator[EngineModel]:
    path = models.bundled_path()
    assert path is not None, "the bundled model isn't installed"
    model = EngineModel(path)
    async with trio.open_nursery() as nursery:
        await nursery.start(model.run)
        with trio.fail_after(120):
            await model.ready()
        yield model
        nursery.cancel_scope.cancel()


async def test_the_judge_ranks_good_splits_over_flawed_ones() -> None:
    splits = [msgspec.json.decode(line, type=Split) for line in SPLITS.read_text("utf-8").splitlines()]
    async with engine() as model:
        judge = Judge(model, AgentSettings(name="eva"), "specific")
        marks = {}
        for split in splits:
            gains = await judge.weigh(split.goal, split.steps)
            verdict = judging.by_likelihood(split.goal, split.steps, gains, None)
            marks[split.goal, split.flaw] = verdict.marks.mean
    for (goal, flaw), mark in marks.items():
        if flaw is None:
            assert mark >= 60, goal
        else:
            assert mark < marks[goal, None], (goal, flaw)


async def test_a_leaf_is_done_and_streamed() -> None:
    plan = making.plan()
    task, _ = making.accept(plan, making.draft(plan, titles=["List three things that a bakery sells", "Buy an oven"]))
    pieces: list[str] = []
    async with engine() as model:
        worker = Worker(model, AgentSettings(name="cleo", work_tokens=40))
        text = await worker(plan, task, pieces.append, seed=3, tries=0)
    assert len(text) > 10
    assert len(pieces) > 3
