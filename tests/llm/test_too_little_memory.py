"""The real engine where the system refuses it memory: a line and a remedy, and no second try."""

import sys

import pytest
import trio

from swarmtui.llm import process
from swarmtui.llm.client import EngineModel, EngineSettings
from swarmtui.llm.model import ModelError

pytestmark = pytest.mark.model

LIMIT = 2_000 << 20
"""Bytes of address space: enough for the program and the weights, too little for the cache."""
CODE = f"""
import resource, runpy
resource.setrlimit(resource.RLIMIT_AS, ({LIMIT}, {LIMIT}))
runpy.run_module("swarmtui.llm.engine", run_name="__main__")
"""


async def test_a_cache_that_the_system_has_no_memory_for_is_told(bundled, monkeypatch):
    monkeypatch.setattr(process, "command", lambda: [sys.executable, "-c", CODE])
    model = EngineModel(bundled, EngineSettings(context=8_192, slots=12, threads=1))
    async with trio.open_nursery() as nursery:
        await nursery.start(model.run)
        with trio.fail_after(300), pytest.raises(ModelError, match="failed to allocate buffer for kv cache") as caught:
            await model.ready()
        nursery.cancel_scope.cancel()
    assert "llm.slots or llm.context lower" in caught.value.remedy
    assert (model.state, model.restarts) == ("refused", 0)
