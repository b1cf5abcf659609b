"""The client's own part: turns, cancellation, engines that die or talk nonsense. With an engine that has no model."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from swarmtui.llm import client, models, process
from swarmtui.llm.client import EngineModel
from swarmtui.llm.model import ModelError, Request


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    script = str(Path(__file__).with_name("fake_engine.py"))
    monkeypatch.setattr(process, "command", lambda: [sys.executable, script])
    monkeypatch.setattr(models, "check", lambda path: None)
    monkeypatch.setattr(client, "FIRST_PAUSE_S", 0.01)


@asynccontextmanager
async def running(path="fake.gguf"):
    model = EngineModel(Path(path))
    async with trio.open_nursery() as nursery:
        await nursery.start(model.run)
        with trio.fail_after(60):
            yield model
        nursery.cancel_scope.cancel()


def ask(prompt, agent="ada", priority=0):
    return Request(agent=agent, purpose="work", subject="", system="", prompt=prompt, priority=priority)


async def held(model, nursery):
    """Fill the one slot; returns the scope whose cancellation frees it."""
    started, scope = trio.Event(), trio.CancelScope()

    async def hold():
        with scope:
            await model.generate(ask("hang", "holder"), lambda _: started.set())

    nursery.start_soon(hold)
    await started.wait()
    return scope


async def test_turns_are_fair_and_the_urgent_goes_first():
    order = []

    async def one(model, prompt, agent, priority):
        order.append((await model.generate(ask(prompt, agent, priority))).text)

    async with running() as model, trio.open_nursery() as nursery:
        await model.ready()
        scope = await held(model, nursery)
        for prompt, agent, priority in [
            ("g0", "greedy", 0), ("g1", "greedy", 0), ("g2", "greedy", 0), ("m0", "modest", 0), ("now", "urgent", 9),
        ]:  # fmt: skip
            nursery.start_soon(one, model, prompt, agent, priority)
            while model.waiting + len(order) < {"g0": 1, "g1": 2, "g2": 3, "m0": 4, "now": 5}[prompt]:
                await trio.lowlevel.checkpoint()
        scope.cancel()
    assert order == ["now", "g0", "m0", "g1", "g2"]


async def test_a_waiting_request_that_is_cancelled_never_reaches_the_engine():
    async with running() as model, trio.open_nursery() as nursery:
        await model.ready()
        scope = await held(model, nursery)
        with trio.move_on_after(0.01):
            await model.generate(ask("die"))
        assert model.waiting == 0
        scope.cancel()
        assert (await model.generate(ask("fine"))).text == "fine"
        assert model.restarts == 0


@pytest.mark.parametrize("prompt", ["die", "garbage"])
async def test_an_engine_that_ends_or_talks_nonsense_is_started_again(prompt):
    async with running() as model:
        await model.ready()
        for count in (1, 2):
            with pytest.raises(ModelError):
                await model.generate(ask(prompt))
            assert (await model.generate(ask("fine"))).text == "fine"
            assert model.restarts == count
        assert any("started again" in each for each in model.notices)
        assert len(model.notices) <= 20


async def test_an_engine_that_dies_while_it_loads_is_refused():
    async with running("die at once") as model:
        with pytest.raises(ModelError, match="exit code 9 while it loaded"):
            await model.ready()
        with pytest.raises(ModelError):
            await model.generate(ask("fine"))
        assert model.state == "refused"


async def test_a_listener_that_raises_costs_nobody_anything():
    def bad(_):
        raise ValueError("no")

    async with running() as model:
        assert (await model.generate(ask("fine"), bad)).text == "fine"
        assert (await model.generate(ask("again"))).text == "again"
        assert model.notices == ["a fake"]


async def test_when_it_is_closed_all_who_wait_are_told():
    failures = []

    async def doomed(model):
        with pytest.raises(ModelError, match="closed") as caught:
            await model.generate(ask("hang"))
        failures.append(caught.value)

    async with trio.open_nursery() as outer:
        model = EngineModel(Path("fake.gguf"))
        async with trio.open_nursery() as inner:
            await inner.start(model.run)
            await model.ready()
            outer.start_soon(doomed, model)
            outer.start_soon(doomed, model)
            with trio.fail_after(60):
                while model.working + model.waiting < 2:
                    await trio.lowlevel.checkpoint()
            inner.cancel_scope.cancel()
    assert len(failures) == 2
    assert model.pid == 0
