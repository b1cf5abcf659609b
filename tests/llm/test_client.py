"""The real engine with the bundled model: answers, cancellation, death, refusals."""

import os
import signal

import pytest
import trio

from swarmtui.llm.client import EngineModel
from swarmtui.llm.model import Likelihood, ModelError, Request
from swarmtui.llm.vigil import Vigil
from tests.llm.conftest import engine
from tests.llm.gguf_files import rewritten

pytestmark = pytest.mark.model

STEPS = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "minItems": 2,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string", "minLength": 1, "maxLength": 40},
                    "atomic": {"type": "boolean"},
                },
                "required": ["title", "atomic"],
            },
        }
    },
    "required": ["steps"],
}
SYSTEM = "You split a goal into a few short steps, each different from the others, and answer in JSON only."


def ask(prompt="Goal: bake bread.", *, agent="ada", schema=STEPS, max_tokens=60, system=SYSTEM, **more):
    return Request(
        agent=agent,
        purpose="draft",
        subject=prompt,
        system=system,
        prompt=prompt,
        schema=schema,
        max_tokens=max_tokens,
        **more,
    )


async def test_answers_are_valid_reuse_the_prefix_and_repeat_with_their_seed(bundled):
    async with engine(bundled, slots=2) as model:
        heard = []
        first = await model.generate(ask(seed=3), heard.append)
        assert first.value["steps"]
        assert first.tokens_cached == 0
        assert not first.cut
        assert "".join(heard) == first.text
        other = await model.generate(ask("Goal: repair a bicycle.", seed=3))
        assert other.tokens_cached > 10
        again = await model.generate(ask(seed=3))
        assert again.text == first.text
        free = await model.generate(ask("Say hello.", schema=None, max_tokens=12))
        assert free.value is None
        assert free.text
        assert free.tokens_out <= 12
        tiny = await model.generate(ask(max_tokens=5))
        assert tiny.cut
        assert len(tiny.value["steps"]) == 2


async def test_a_refused_schema_costs_nobody_what_was_read(bundled):
    async with engine(bundled, slots=1) as model:
        first = await model.generate(ask())
        with pytest.raises(ModelError, match="pattern"):
            await model.generate(ask(schema={"type": "string", "pattern": "x"}))
        again = await model.generate(ask())
        assert again.tokens_cached == first.tokens_in - 1


async def test_several_at_once_and_likelihood(bundled):
    answers = []

    async def one(model, i):
        answers.append(await model.generate(ask(f"Goal: plan trip {i}.", agent=f"a{i % 3}", seed=i, max_tokens=40)))

    async with engine(bundled, slots=3) as model:
        async with trio.open_nursery() as nursery:
            for i in range(5):
                nursery.start_soon(one, model, i)
        assert len(answers) == 5
        # The first reads the instructions, the others wait for them.
        assert sum(each.tokens_cached == 0 for each in answers) == 1
        texts = ["Paris.", "a banana that sings.", "Paris. It is known for its museums", ""]
        means = await model.likelihood(
            Likelihood(
                agent="bob", prefix="The capital of France is", continuations=[" " + t for t in texts[:3]] + [""]
            )
        )
        assert means[0] > means[1]
        assert means[3] == 0
        alone = [
            (
                await model.likelihood(
                    Likelihood(agent="bob", prefix="The capital of France is", continuations=[" " + t])
                )
            )[0]
            for t in texts[:3]
        ]
        assert means[:3] == pytest.approx(alone, abs=0.05)


async def test_a_cancelled_request_frees_its_slot(bundled):
    async with engine(bundled, slots=1) as model, trio.open_nursery() as nursery:
        heard = trio.Event()
        scope = trio.CancelScope()

        async def long():
            with scope:
                await model.generate(ask("Tell a long story.", schema=None, max_tokens=1500), lambda _: heard.set())

        nursery.start_soon(long)
        with trio.fail_after(60):
            await heard.wait()
        scope.cancel()
        reply = await model.generate(ask(max_tokens=20))
        assert reply.value["steps"]
        assert model.working == model.waiting == 0


async def test_a_killed_engine_comes_back_and_costs_nothing(bundled, tmp_path):
    async with engine(bundled, slots=1, log=tmp_path / "engine.log") as model:
        heard = trio.Event()
        answers = []

        async def one(prompt, agent, on_text=None):
            answers.append(await model.generate(ask(prompt, agent=agent, max_tokens=80), on_text))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, "Goal: bake bread.", "ada", lambda _: heard.set())
            with trio.fail_after(60):
                await heard.wait()
            old = model.pid
            os.kill(old, signal.SIGKILL)
            # This one waits in the client, the other is asked again.
            nursery.start_soon(one, "Goal: repair a bicycle.", "bob")
        assert all(each.value["steps"] for each in answers)
        assert len(answers) == 2
        assert model.restarts == 1
        assert model.pid not in (0, old)
        assert model.state == "ready"
        assert "SIGKILL" in model.notices[-1] and "started again" in model.notices[-1]
        pid = model.pid
    assert model.state == "closed"
    assert model.pid == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ModelError, match="closed"):
        await model.generate(ask())


async def test_a_stopped_engine_is_noticed_killed_and_replaced(bundled):
    async with engine(bundled, slots=2) as model:
        old = model.pid
        stopped = trio.Event()

        def hear(_):
            if not stopped.is_set():
                os.kill(old, signal.SIGSTOP)
                model.vigil = Vigil(0.5)  # of this engine alone
                stopped.set()

        with trio.fail_after(120):
            reply = await model.generate(ask(max_tokens=80), hear)
        assert stopped.is_set()
        assert reply.value["steps"]
        assert model.restarts == 1
        assert "the engine hung" in model.notices[-1]
        with pytest.raises(ProcessLookupError):
            os.kill(old, 0)


async def refused(path):
    model = EngineModel(path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(model.run)
        with trio.fail_after(60), pytest.raises(ModelError) as caught:
            await model.ready()
        with pytest.raises(ModelError):
            await model.generate(ask())
    assert model.state == "refused"
    assert caught.value.remedy
    return str(caught.value)


async def test_files_that_cant_be_used_are_refused_before_anything_starts(bundled, tmp_path):
    assert "no model file" in await refused(tmp_path / "none.gguf")
    part = tmp_path / "part.gguf"
    with bundled.open("rb") as file:
        part.write_bytes(file.read(8_000_000))
    assert "truncated" in await refused(part)
    (tmp_path / "text.gguf").write_text("hello " * 100)
    assert "not a GGUF" in await refused(tmp_path / "text.gguf")
    odd = rewritten(bundled, tmp_path / "odd.gguf", replace={"general.architecture": "abacus"})
    assert "architecture" in await refused(odd)


async def test_without_a_template_it_completes_plainly_and_says_so(bundled, tmp_path):
    plain = rewritten(bundled, tmp_path / "plain.gguf", drop=["tokenizer.chat_template"])
    async with engine(plain, slots=1, context=512) as model:
        assert any("no chat template" in each for each in model.notices)
        assert (await model.generate(ask(max_tokens=20))).value["steps"]
        with pytest.raises(ModelError, match="doesn't fit") as caught:
            await model.generate(ask("word " * 600))
        assert caught.value.remedy
        with pytest.raises(ModelError, match="isn't supported"):
            await model.generate(ask(schema={"type": "string", "pattern": "a"}))
        assert (await model.generate(ask(max_tokens=20))).value["steps"]
