"""The same against a real server of the kind: llama_cpp.server with the bundled model, on loopback."""

import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
import trio

from swarmtui.llm import grammar
from swarmtui.llm.model import Likelihood, ModelError, Request
from swarmtui.llm.remote.address import parse
from swarmtui.llm.remote.model import RemoteModel

pytestmark = [pytest.mark.model, pytest.mark.real]

PATIENCE_S = 300
KEY = "sk-of-the-house"
SCHEMA = {
    "type": "object",
    "properties": {
        "steps": {"type": "array", "items": {"type": "string", "maxLength": 24}, "minItems": 2, "maxItems": 2}
    },
    "required": ["steps"],
}


@asynccontextmanager
async def llama_server(bundled, log, *extra):
    """A server in a process of its own; gives its address once it answers, and ends it on the way out."""
    # It takes no port of 0: one that was free a moment ago is held until just before it starts.
    with trio.socket.socket() as held:
        await held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    arguments = ["--model", str(bundled), "--host", "127.0.0.1", "--port", str(port), "--n_ctx", "512", *extra]
    with log.open("wb") as out:
        child = await trio.lowlevel.open_process(
            [sys.executable, "-m", "llama_cpp.server", "--model_alias", "house", "--api_key", KEY, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        )
    try:
        with trio.fail_after(PATIENCE_S):
            while True:
                assert child.poll() is None, log.read_text()
                try:
                    await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
                    break
                except OSError:
                    await trio.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        child.kill()
        with trio.CancelScope(shield=True):
            await child.wait()


@asynccontextmanager
async def running(address, key=KEY):
    model = RemoteModel(parse(address), key=key, key_variable="SWARMTUI_API_KEY")
    async with trio.open_nursery() as nursery:
        with trio.fail_after(PATIENCE_S):
            await nursery.start(model.run)
            yield model
        nursery.cancel_scope.cancel()


def request(**more):
    more = {"max_tokens": 48, "temperature": 0.0, **more}
    return Request(agent="ada", purpose="draft", subject="Tea", system="You plan.", prompt="How to make tea?", **more)


async def test_text_json_likelihoods_and_a_cancelled_answer(bundled, tmp_path):
    async with llama_server(bundled, tmp_path / "log", "--logits_all", "true") as address:
        async with running(address, key="wrong") as model:
            with pytest.raises(ModelError, match="wants another key") as caught:
                await model.ready()
            assert "SWARMTUI_API_KEY" in caught.value.remedy
        async with running(f"{address}#other") as model:
            with pytest.raises(ModelError, match="has no model other"):
                await model.ready()
        async with running(address) as model:
            await model.ready()
            assert model.name == "house (server)"
            assert model.judging == "forced"
            assert not model.notices
            heard = []
            reply = await model.generate(request(max_tokens=8), heard.append)
            assert reply.text == "".join(heard)
            assert len(heard) > 1
            value = (await model.generate(request(schema=SCHEMA))).value
            assert not grammar.fault(SCHEMA, value), json.dumps(value)
            fitting, foreign = await model.likelihood(
                Likelihood(agent="ada", prefix="To make tea, first boil the", continuations=[" water", " Tökyo"])
            )
            assert fitting > foreign + 2
            begun = trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(model.generate, request(max_tokens=400), lambda _: begun.set())
                await begun.wait()
                nursery.cancel_scope.cancel()
            assert (await model.generate(request(max_tokens=2))).text


async def test_without_likelihoods_it_says_so(bundled, tmp_path):
    async with llama_server(bundled, tmp_path / "log", "--logits_all", "false") as address, running(address) as model:
        await model.ready()
        assert model.judging == "none"
        assert model.notices == ["house (server) offers no likelihoods: scorers ask it for written marks."]
