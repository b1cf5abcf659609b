"""The models that local agents share: each is started once, at its first use."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from swarmtui.config import Config
from swarmtui.llm.client import EngineModel
from swarmtui.llm.model import Model, ModelError
from swarmtui.llm.models import choose
from swarmtui.llm.scripted import ScriptedModel
from swarmtui.llm.tuning import Notebook
from swarmtui.paths import Folders, measurements

from .errors import SwarmError
from .metering import Meter, Metered

SCRIPTED = "scripted"


@dataclass(slots=True)
class _Started:
    model: Model
    metered: Metered
    engine: EngineModel | None


class Models:
    """Model spec (as in the configuration: auto, scripted, a path, a name) → a running model."""

    def __init__(self, config: Config, meter: Meter, nursery: trio.Nursery) -> None:
        self._config = config
        self._meter = meter
        self._nursery = nursery
        self._started: dict[str, _Started] = {}
        self._lock = trio.Lock()

    async def get(self, spec: str) -> Model:
        """The model, loaded.

        Raises:
            SwarmError: it isn't there, or can't be loaded here; with the remedy.
        """
        async with self._lock:
            if spec not in self._started:
                self._started[spec] = await self._start(spec)
            return self._started[spec].metered

    async def _start(self, spec: str) -> _Started:
        if spec == SCRIPTED:
            model = ScriptedModel(seed=self._config.seed or 0)
            return _Started(model, Metered(model, self._meter), None)
        try:
            file = await trio.to_thread.run_sync(choose, spec, self._config.models_dir)
            log = Folders(self._config.data_dir).data / "llama.log"
            notebook = Notebook(measurements())
            engine = EngineModel(file, self._config.llm, log=log, notebook=notebook, on_cost=self._meter.charge)
            await self._nursery.start(engine.run)
            await engine.ready()
        except ModelError as error:
            raise SwarmError(str(error), error.remedy) from error
        return _Started(engine, Metered(engine, self._meter, tells_costs=True), engine)

    @property
    def name(self) -> str:
        """Names of the models in use."""
        return ", ".join(started.model.name for started in self._started.values())

    @property
    def scripted(self) -> bool:
        return SCRIPTED in self._started

    @property
    def notices(self) -> list[str]:
        """What a person should know about the models now (a child that died, no chat template …)."""
        return [notice for started in self._started.values() if started.engine for notice in started.engine.notices]
