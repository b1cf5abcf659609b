"""Which agents share a model, when one starts and ends, and what is said of those that can't be used. The engines are
children without a model: what is tested is who gets which."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from swarmtui.config import Config, load, with_model
from swarmtui.llm import memory, process
from swarmtui.llm import models as files
from swarmtui.llm.client import EngineModel
from swarmtui.llm.memory import Memory
from swarmtui.llm.model import Likelihood, ModelError, Request
from swarmtui.swarm import Swarm, SwarmError
from swarmtui.swarm.metering import Meter
from swarmtui.swarm.models import Models
from tests.llm.gguf_files import gguf
from tests.llm.remote_server import refusal, server, spoken


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two models, as the only ones of this machine, and engines that load nothing."""
    fake = Path(__file__).parents[1] / "llm" / "fake_engine.py"
    monkeypatch.setattr(process, "command", lambda: [sys.executable, str(fake)])
    monkeypatch.setattr(files, "bundled_path", lambda: None)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    gguf(tmp_path / "own/small-1b.gguf")
    gguf(tmp_path / "own/large-7b.gguf", data=640)
    return tmp_path / "own"


def settings(own: Path, **flags: object) -> Config:
    base: dict[str, object] = {"llm.folder": str(own), "data_dir": str(own.parent / "data"), "swarm.mdns": False}
    return load(base | flags, {}, None, "tiny")


@asynccontextmanager
async def shelf(config: Config) -> AsyncIterator[Models]:
    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            yield Models(config, Meter(), nursery)
            nursery.cancel_scope.cancel()


def pids(models: Models) -> dict[str, int]:
    """Engine processes by their model's name."""
    sources = [started.source for started in models._running.values()]
    return {source.name: source.pid for source in sources if isinstance(source, EngineModel)}


def ask(prompt: str) -> Request:
    return Request(agent="ada", purpose="work", subject="", system="", prompt=prompt)


async def test_a_file_is_loaded_once_whatever_it_is_called(own: Path) -> None:
    async with shelf(settings(own, model="small")) as models:
        await models.prepare(["scorer", "executor"])
        names = ["small", "small-1b", str(own / "small-1b.gguf"), models.usual("scorer")]
        chosen = [await models.take(name) for name in names]
        assert list(pids(models)) == ["small-1b"]
        assert models.name == "small-1b"
        assert (await chosen[0].generate(ask("hello"))).text == "hello"
        other = await models.take("large")
        assert set(pids(models)) == {"small-1b", "large-7b"}
        assert models.name == "small-1b, large-7b"
        # Nobody uses the large one any more: it ends. The other is what new agents will get: it stays.
        other.close()
        other.close()
        for each in chosen:
            each.close()
        assert list(pids(models)) == ["small-1b"]


async def test_an_agent_changes_its_model_and_keeps_it_when_the_other_cant_be_used(own: Path) -> None:
    gguf(own / "broken.gguf", rows=1 << 20)
    async with shelf(settings(own, model="small")) as models:
        ada, bob = await models.take("small"), await models.take("small")
        await ada.change("large")
        assert (ada.name, bob.name) == ("large-7b", "small-1b")
        with pytest.raises(SwarmError, match="truncated"):
            await ada.change("broken")
        assert ada.name == "large-7b"
        await ada.change("scripted")
        assert list(pids(models)) == ["small-1b"]
        assert models.scripted
        bob.close()
        assert not pids(models)


async def test_new_agents_get_what_was_chosen_for_them(own: Path) -> None:
    config = settings(own, model="small", **{"agents.scorer_model": "large"})
    async with shelf(config) as models:
        await models.prepare(["decomposer", "scorer"])
        assert set(pids(models)) == {"small-1b", "large-7b"}
        assert [models.usual(role) for role in ("decomposer", "scorer", "executor")] == ["small", "large", "small"]
        with pytest.raises(SwarmError, match="no model called nothing"):
            await models.use("nothing")
        assert set(pids(models)) == {"small-1b", "large-7b"}
        assert await models.use("large") == "large-7b"
        assert list(pids(models)) == ["large-7b"]
        assert models.usual("decomposer") == "large"


async def test_a_model_whose_engine_gave_up_is_started_anew_when_it_is_chosen_again(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarmtui.llm.client.FIRST_PAUSE_S", 0.01)
    async with shelf(settings(own, model="small")) as models:
        ada, bob = await models.take("small"), await models.take("small")
        (own / "small-1b.gguf").rename(own / "away")
        with pytest.raises(ModelError):
            await ada.generate(ask("die"))
        with pytest.raises(ModelError, match="no model file"):
            await ada.generate(ask("hello"))
        with pytest.raises(SwarmError):
            await ada.change("small")
        (own / "away").rename(own / "small-1b.gguf")
        await ada.change("small")
        assert (await ada.generate(ask("hello"))).text == "hello"
        await bob.change("small")
        assert (await bob.generate(ask("hello"))).text == "hello"
        assert len(pids(models)) == 1
        ada.close()
        bob.close()
        assert not pids(models)


async def test_a_server_is_met_once_and_may_end(own: Path) -> None:
    async with server() as here, shelf(settings(own, model=here.url)) as models:

        async def handler(asked: object) -> object:
            return refusal(404, "no")

        here.handler = handler
        first, second = await models.take(here.url), await models.take(f"{here.url}/")
        assert first.name == second.name == "small-1B-instruct (server)"
        assert len([each for each in here.asked if each.path == "/v1/models"]) == 1
        assert any("written marks" in notice for notice in models.notices)
        here.answers = [spoken("hello")]
        assert (await first.generate(ask("x"))).text == "hello"
        with pytest.raises(Exception, match="no likelihoods"):
            await first.likelihood(Likelihood(agent="ada", prefix="x", continuations=["y"]))
        here.names = ("other",)
        with pytest.raises(SwarmError, match="has no model none") as caught:
            await models.take(f"{here.url}#none")
        assert "other" in caught.value.remedy


def test_who_says_model_means_all_agents(own: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('model = "small"\n[agents]\nscorer_model = "large"\n')

    def roles(flags: dict[str, object], env: dict[str, str]) -> list[str]:
        config = load(flags, env, file, None)
        return [config.model_of(role) for role in ("decomposer", "scorer", "executor")]

    assert roles({}, {}) == ["small", "large", "small"]
    assert roles({"model": "scripted"}, {}) == ["scripted"] * 3
    assert roles({}, {"SWARMTUI_MODEL": "scripted"}) == ["scripted"] * 3
    assert roles({"model": "scripted", "agents.executor_model": "large"}, {}) == ["scripted", "scripted", "large"]
    assert roles({}, {"SWARMTUI_API_KEY": "secret"}) == ["small", "large", "small"]
    assert with_model(load({}, {}, file, None), "x").model_of("scorer") == "x"


def spoil(own: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> str:
    """Make a model that can't be used; returns how a person names it."""
    path = own / "bad.gguf"
    if how == "text":
        path.write_text("this is no model")
    elif how == "truncated":
        gguf(path, rows=1 << 20)
    elif how == "context":
        gguf(path, context=128)
    elif how == "large":
        gguf(path)
        monkeypatch.setattr(memory, "memory", lambda: Memory(total=10**8, free=10**8))
    elif how in ("killed", "failed"):
        gguf(path)
        script = {"killed": "kill -KILL $$", "failed": "exit 3"}[how]
        monkeypatch.setattr(process, "command", lambda: ["sh", "-c", script])
    elif how == "server":
        return "http://127.0.0.1:9/v1"  # discard: nobody listens
    elif how == "no address":
        return "http://"
    return "bad"


@pytest.mark.parametrize(
    ("how", "reason", "remedy"),
    [
        ("missing", "no model called bad", "swarmtui models"),
        ("text", "not a GGUF file", "choose another"),
        ("truncated", "truncated", "get the file again"),
        ("context", "its context of 128 tokens is too small", "choose another"),
        ("large", "too large for this machine: it needs", "smaller model"),
        ("killed", "died of SIGKILL while it loaded the model", "smaller model"),
        ("failed", "ended with exit code 3", "log"),
        ("server", "can't be reached: Connection refused", "start the server"),
        ("no address", "isn't an address", "http://127.0.0.1:8080/v1"),
    ],
)
def test_a_model_that_cant_be_used_is_told_before_any_plan(
    own: Path, monkeypatch: pytest.MonkeyPatch, how: str, reason: str, remedy: str
) -> None:
    spec = spoil(own, monkeypatch, how)
    monkeypatch.setattr("swarmtui.llm.remote.model.FIRST_PAUSE_S", 0.01)
    swarm = Swarm(settings(own, model=spec), resume=False)
    try:
        with pytest.raises(SwarmError, match=reason) as caught:
            swarm.start()
        assert remedy in caught.value.remedy
        assert caught.value.another_model
        assert not swarm.latest.plans and not swarm.latest.agents
        # The person chooses another, and it goes on from there.
        swarm.start("scripted")
        assert swarm.latest.scripted
    finally:
        assert swarm.stop(30)


def test_the_list_that_the_screen_gets(own: Path) -> None:
    gguf(own / "half.gguf", rows=1 << 20)
    gguf(own / "plain.gguf", template="")
    found = {each.name: each for each in Swarm(settings(own, model="http://box:8080/v1")).models()}
    assert list(found) == ["half", "large-7b", "plain", "small-1b", "http://box:8080/v1", "scripted"]
    assert found["half"].problem == "truncated"
    assert found["plain"].note == "no chat template"
    assert found["small-1b"].spec == str(own / "small-1b.gguf")
    assert found["small-1b"].needs and not found["small-1b"].problem
