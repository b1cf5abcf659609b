"""The agents' work with the bundled model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from swarmtui.agents import AgentSettings
from swarmtui.agents.judge import Judge
from swarmtui.agents.trial import LIKELIHOOD, Numbered, Remembered, mark, read
from swarmtui.agents.work import Worker
from swarmtui.llm import models
from swarmtui.llm.client import EngineModel

from . import making

pytestmark = pytest.mark.model
SPLITS = Path(__file__).parent.parent / "data" / "splits_few.jsonl"


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
    """docs/judge.md has the whole table; here good ones have 81 and 83, flawed ones 42 and 51."""
    found = {(each.split.goal, each.split.flaw): each for each in read(SPLITS.open("rb")) if isinstance(each, Numbered)}
    wanted = [
        (goal, flaw)
        for goal, flaw in found
        if goal in ("Open a small bakery", "Train for a first marathon in six months")
    ]
    async with engine() as model:
        judge = Judge(Remembered(model), AgentSettings(name="eva"), None)
        marked = {key: (await mark(judge, found[key], [LIKELIHOOD])).verdicts[LIKELIHOOD] for key in wanted}
    for (goal, flaw), verdict in marked.items():
        if flaw is None:
            assert verdict.marks.mean >= 63, (goal, verdict)
        else:
            assert verdict.marks.mean < marked[goal, None].marks.mean - 8, (goal, flaw, verdict)
            assert verdict.critique
    assert (
        'Step 3 ("Finish everything") is vague' in marked["Train for a first marathon in six months", "vague"].critique
    )


async def test_a_leaf_is_done_and_streamed() -> None:
    plan = making.plan()
    task, _ = making.accept(plan, making.draft(plan, titles=["List three things that a bakery sells", "Buy an oven"]))
    pieces: list[str] = []
    async with engine() as model:
        worker = Worker(model, AgentSettings(name="cleo", work_tokens=40))
        text = await worker(plan, task, pieces.append, seed=3, tries=0)
    assert len(text) > 10
    assert len(pieces) > 3
