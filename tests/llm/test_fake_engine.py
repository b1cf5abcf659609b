"""The client's own part: turns, cancellation, engines that die or talk nonsense. With an engine that has no model."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from swarmtui.llm import client, models, process, tuning
from swarmtui.llm.client import EngineModel
from swarmtui.llm.model import ModelError, Request, Urgency
from swarmtui.llm.vigil import Vigil


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    script = str(Path(__file__).with_name("fake_engine.py"))
    monkeypatch.setattr(process, "command", lambda: [sys.executable, script])
    monkeypatch.setattr(models, "check", lambda path: None)
    monkeypatch.setattr(client, "FIRST_PAUSE_S", 0.01)


@asynccontextmanager
async def running(path="fake.gguf", **options):
    model = EngineModel(Path(path), **options)
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
        asked = [
            ("g0", "greedy", Urgency.WORK),
            ("g1", "greedy", Urgency.WORK),
            ("g2", "greedy", Urgency.WORK),
            ("m0", "modest", Urgency.WORK),
            ("rival", "late", Urgency.RIVAL),
            ("first", "early", Urgency.DRAFT),
        ]
        for i, (prompt, agent, priority) in enumerate(asked):
            nursery.start_soon(one, model, prompt, agent, priority)
            while model.waiting + len(order) < i + 1:
                await trio.lowlevel.checkpoint()
        # A verdict needn't wait until a slot is free.
        assert (await model.generate(ask("vote", "judge", Urgency.VOTE))).text == "vote"
        assert order == []
        scope.cancel()
    assert order == ["first", "g0", "m0", "g1", "g2", "rival"]


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
            assert model.restarts == 2 * count  # the culprit is tried once more
        assert any("started again" in each for each in model.notices)
        assert any("1 request asked again" in each for each in model.notices)
        assert any("1 request lost" in each for each in model.notices)
        assert len(model.notices) <= 20


async def test_what_an_engine_said_before_it_died_stays_in_the_log_which_doesnt_grow_for_ever(tmp_path):
    log = tmp_path / "llama.log"
    log.write_text("what another engine said\n")
    async with running(log=log) as model:
        await model.ready()
        with pytest.raises(ModelError):
            await model.generate(ask("die"))
        assert (await model.generate(ask("fine"))).text == "fine"
        assert log.read_text() == "what another engine said\n" + "dying\n" * 2
    log.write_bytes(b"x" * (process.MAX_LOG + 1))
    async with running(log=log) as model:
        await model.ready()
    assert log.read_bytes() == b""


async def test_the_one_that_an_engine_dies_of_is_found_and_the_others_are_answered():
    answers, lost = [], []

    async def one(model, prompt):
        try:
            answers.append((await model.generate(ask(prompt, agent=prompt))).text)
        except ModelError as error:
            lost.append(str(error))

    async with running("three.gguf") as model, trio.open_nursery() as nursery:
        await model.ready()
        held_scope = await held(model, nursery)
        other = await held(model, nursery)
        nursery.start_soon(one, model, "die")
        while not lost:
            await trio.sleep(0.01)
            if model.restarts and answers == []:
                # The two that hold their places were asked again; each alone, they would hold up the culprit.
                held_scope.cancel()
                other.cancel()
                answers.append("")
                nursery.start_soon(one, model, "fine")
                nursery.start_soon(one, model, "fine too")
    assert len(lost) == 1
    assert sorted(answers) == ["", "fine", "fine too"]
    assert model.restarts == 2


async def test_an_engine_that_is_silent_at_work_is_killed_and_replaced():
    """It's stopped: alive, but silent. From that moment on it gets little time; the next one gets the usual."""
    async with running() as model:
        await model.ready()
        first = model.pid

        def silent(_):
            model.vigil = Vigil(0.5)

        with pytest.raises(ModelError, match="hung: no sign of life for") as caught:
            await model.generate(ask("stop"), silent)
        assert caught.value.remedy
        assert (await model.generate(ask("fine"))).text == "fine"
        assert model.pid not in (0, first)
        assert model.restarts == 2
        assert any("the engine hung" in each for each in model.notices)


async def test_an_engine_that_is_silent_while_it_loads_is_refused():
    async with running("never ready", patience_s=0.5) as model:
        with pytest.raises(ModelError, match=r"hung.*while it loaded"):
            await model.ready()


async def test_what_was_measured_is_remembered(tmp_path):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"x")
    notebook = tuning.Notebook(tmp_path / "cache" / "measured.json")
    async with running(file, notebook=notebook) as model:
        await model.ready()
        assert model.width == 3
    assert [each.width for each in notebook.read(tuning.key(file, model._settings)).speeds] == [1, 4]
    async with running(file, notebook=notebook) as model:
        await model.ready()
        assert model.width == 4  # as measured before: it isn't measured again


async def test_each_request_is_charged_also_one_that_is_given_up():
    costs = []
    async with running(on_cost=costs.append) as model, trio.open_nursery() as nursery:
        await model.ready()
        await model.generate(ask("fine"))
        scope = await held(model, nursery)
        scope.cancel()
        await model.generate(ask("again"))
    assert [(each.agent, each.kind, each.tokens, each.cancelled) for each in costs] == [
        ("ada", "work", 7, False),
        ("holder", "work", 9, True),
        ("ada", "work", 7, False),
    ]


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
