"""The models that local agents use: each is started once, shared by all who chose it, and ended when nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import trio

from swarmtui.config import Config
from swarmtui.llm import models as files
from swarmtui.llm.client import EngineModel
from swarmtui.llm.model import Likelihood, Model, ModelError, Reply, Request
from swarmtui.llm.remote.address import is_address, parse
from swarmtui.llm.remote.model import RemoteModel
from swarmtui.llm.scripted import ScriptedModel
from swarmtui.llm.tuning import Notebook
from swarmtui.paths import Folders, measurements, swift_models_dir
from swarmtui.view import Role

from .errors import SwarmError
from .metering import Meter, Metered


class Source(Model, Protocol):
    """A model with a life of its own."""

    @property
    def notices(self) -> list[str]: ...
    async def run(self, task_status: trio.TaskStatus[None] = ...) -> None: ...
    async def ready(self) -> None: ...


@dataclass(eq=False)
class _Started:
    """A model that runs, and how many use it."""

    key: str
    source: Source
    metered: Metered
    notices: list[str]
    users: int = 0
    ended: bool = False
    """It gave up for good, e.g. as its file is gone."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    async def live(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        with self.scope:
            await self.source.run(task_status)
        self.ended = True


class Chosen:
    """One agent's model. Satisfies `llm.model.Model`; which model it is may change while the agent lives."""

    def __init__(self, shelf: Models, started: _Started) -> None:
        self._shelf = shelf
        self._started: _Started | None = started
        self._last = started

    @property
    def name(self) -> str:
        return self._last.metered.name

    @property
    def context(self) -> int:
        """Tokens per request; 0 where the model doesn't tell."""
        return self._last.metered.context

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        """See :meth:`Model.generate`. A request that's under way stays with the model that it was given to."""
        return await self._last.metered.generate(request, on_text)

    async def likelihood(self, request: Likelihood) -> list[float]:
        """See :meth:`Model.likelihood`."""
        return await self._last.metered.likelihood(request)

    async def change(self, spec: str) -> None:
        """Use another model from now on.

        Raises:
            SwarmError: it can't be used; the agent keeps the one it has.
        """
        new = await self._shelf.start(spec)
        old, self._started, self._last = self._started, new, new
        if old is not None:
            self._shelf.leave(old)

    def close(self) -> None:
        """The agent has ended."""
        old, self._started = self._started, None
        if old is not None:
            self._shelf.leave(old)


class Models:
    """Model spec (as in the configuration: auto, scripted, a path, a name, an address) → a running model."""

    def __init__(self, config: Config, meter: Meter, nursery: trio.Nursery) -> None:
        self._config = config
        self._meter = meter
        self._nursery = nursery
        self._running: dict[str, _Started] = {}
        self._kept: list[Chosen] = []
        """What new agents will use is kept running though nobody uses it yet."""
        self._usual: dict[Role, str] = {}
        self._lock = trio.Lock()

    def usual(self, role: Role) -> str:
        """The spec of the model that a new agent of this role gets."""
        return self._usual.get(role) or self._config.model_of(role)

    async def prepare(self, roles: Iterable[Role]) -> None:
        """Start the models that agents of these roles will use.

        Raises:
            SwarmError: one can't be used.
        """
        kept = [await self.take(spec) for spec in dict.fromkeys(map(self.usual, roles))]
        self._keep(kept)

    async def use(self, spec: str) -> str:
        """Give new agents of every role this model; returns its name.

        Raises:
            SwarmError: it can't be used; all stays as it was.
        """
        chosen = await self.take(spec)
        self._keep([chosen])
        self._usual = dict.fromkeys(("decomposer", "scorer", "executor"), spec)
        return chosen.name

    def _keep(self, kept: list[Chosen]) -> None:
        old, self._kept = self._kept, kept
        for each in old:
            each.close()

    async def take(self, spec: str) -> Chosen:
        """The model, loaded, for one agent; it's to be closed when the agent has ended.

        Raises:
            SwarmError: it isn't there, or can't be used here; with the remedy.
        """
        return Chosen(self, await self.start(spec))

    async def start(self, spec: str) -> _Started:
        """The running model, with one more user. See `take`."""
        async with self._lock:
            try:
                key, make = await trio.to_thread.run_sync(self._find, spec)
                if key not in self._running or self._running[key].ended:
                    self._running[key] = await self._start(key, *make())
            except ModelError as error:
                raise SwarmError(str(error), error.remedy, another_model=True) from error
            started = self._running[key]
            started.users += 1
            return started

    def leave(self, started: _Started) -> None:
        """One user less; without any, the model ends and its memory is free."""
        started.users -= 1
        if not started.users:
            started.scope.cancel()
            if self._running.get(started.key) is started:
                del self._running[started.key]

    def _find(self, spec: str) -> tuple[str, Callable[[], tuple[Source, bool, list[str]]]]:
        """(what tells models apart, how to make it). Reads folders and headers: not for trio's own thread."""
        if spec == files.SCRIPTED:
            return spec, lambda: (ScriptedModel(seed=self._config.seed or 0), False, [])
        if is_address(spec):
            address = parse(spec)
            return f"{address.base}#{address.model}", lambda: (self._remote(spec), False, [])
        file = files.choose(spec, self._config.models_dir)
        key = str(file.path.resolve())
        if key in self._running:
            return key, lambda: self._local(file, [])
        fit = files.require_memory(file, self._config.llm)
        notices = []
        if fit.verdict == "tight":
            notices.append(f"{file.name} may be slow or be ended by the system: {fit.in_words()}.")
        if not file.template:
            notices.append(f"{file.name} has no chat template: it's used by plain completion.")
        return key, lambda: self._local(file, notices)

    def _local(self, file: files.ModelFile, notices: list[str]) -> tuple[Source, bool, list[str]]:
        log = Folders(self._config.data_dir).data / "llama.log"
        engine = EngineModel(
            file,
            self._config.llm,
            log=log,
            notebook=Notebook(measurements()),
            copies=swift_models_dir(),
            on_cost=self._meter.charge,
        )
        return engine, True, notices

    def _remote(self, spec: str) -> Source:
        llm = self._config.llm
        return RemoteModel(parse(spec), key=self._config.key(), key_variable=llm.key_variable, slots=llm.slots)

    async def _start(self, key: str, source: Source, tells_costs: bool, notices: list[str]) -> _Started:
        started = _Started(key, source, Metered(source, self._meter, tells_costs=tells_costs), notices)
        await self._nursery.start(started.live)
        try:
            await source.ready()
        except BaseException:
            started.scope.cancel()
            raise
        return started

    @property
    def name(self) -> str:
        """Names of the models in use."""
        return ", ".join(dict.fromkeys(started.source.name for started in self._running.values()))

    @property
    def scripted(self) -> bool:
        return files.SCRIPTED in self._running

    @property
    def notices(self) -> list[str]:
        """What a person should know about the models now (a child that died, no chat template …)."""
        told = [notice for each in self._running.values() for notice in (*each.notices, *each.source.notices)]
        return list(dict.fromkeys(told))
