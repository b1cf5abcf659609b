"""A model in an engine process, shared by the agents of one trio loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import trio

from swarmtui.files import reason_of
from swarmtui.llm import models, process, swift, tuning, wire
from swarmtui.llm.desk import Desk, Ticket
from swarmtui.llm.machine import EngineNumbers, EngineSettings
from swarmtui.llm.memo import Memo
from swarmtui.llm.model import Cost, Likelihood, ModelError, Reply, Request
from swarmtui.llm.tuning import Notebook
from swarmtui.llm.vigil import PATIENCE_S, TICK_S, Vigil

FIRST_PAUSE_S, LAST_PAUSE_S = 0.5, 30.0
GOODBYE_S = 2.0
START_S = 60.0
"""What a new process may take until it says its first word."""

State: TypeAlias = Literal["starting", "ready", "restarting", "refused", "closed"]


class EngineModel:
    """Implements `llm.model.Model` over an engine process. `run` must be running for anything to happen.

    Requests wait here, not in the engine: only as many as it has slots are sent, and a few more of the urgent. When it
    dies, or gives no sign of life while it has work, it's started again, after a pause that grows while it keeps dying.
    The requests that it was at are then asked once more, one by one: so the one that kills it is found, and is the only
    one that fails.
    """

    def __init__(
        self,
        file: models.ModelFile | Path,
        settings: EngineNumbers | None = None,
        *,
        log: Path | None = None,
        notebook: Notebook | None = None,
        copies: Path | None = None,
        on_cost: Callable[[Cost], None] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """
        Args:
            file: the model.
            settings: how the engine runs.
            log: where llama.cpp's messages go; None drops them.
            notebook: remembers what was measured of this model here; None: nothing is measured.
            copies: where faster copies of the bundled model lie (see `swift`); None: there are none.
            on_cost: is told what each request took, also of those that were given up.
            patience_s: for how long the engine may give no sign of life, beyond what it announces.
        """
        self._file = file if isinstance(file, models.ModelFile) else None
        self._path = file.path if isinstance(file, models.ModelFile) else file
        self._name = file.name if isinstance(file, models.ModelFile) else file.stem
        self._copies = copies
        self._settings = settings or EngineSettings()
        self._log = log
        self._notebook = notebook
        self._on_cost = on_cost
        self._patience_s = patience_s
        self.vigil = Vigil(patience_s)
        """Over the engine that lives now."""
        self._hung = ""
        self._process: trio.Process | None = None
        self._outgoing: trio.MemorySendChannel[wire.ToEngine] | None = None
        self._desk = Desk()
        self._numbers = 0
        self._memo = Memo()
        self._opened = trio.Event()
        self._refusal: ModelError | None = None
        self.state: State = "starting"
        self.notices: list[str] = []
        """What a person should know, newest last (at most 20)."""
        self.restarts = 0
        self.context = 0
        """Tokens per request, once ready."""
        self.width = 0
        """Answers that go on in one step, once ready."""

    @property
    def name(self) -> str:
        """Short name for the screen."""
        return self._name

    @property
    def slots(self) -> int:
        """Requests that are worked on at the same time, once ready."""
        return self._desk.slots

    @property
    def waiting(self) -> int:
        """Requests without a slot."""
        return self._desk.waiting

    @property
    def working(self) -> int:
        """Requests in the engine."""
        return self._desk.working

    @property
    def pid(self) -> int:
        """The engine's process id; 0 if there's none now."""
        return self._process.pid if self._process else 0

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep an engine running until cancelled; then it's ended and all waiting requests fail.

        Returns early, with `state` 'refused', when the model can't be used at all. Never raises on its own.
        """
        pause = FIRST_PAUSE_S
        task_status.started()
        try:
            await self._prepare()
            while self._refusal is None:
                began = trio.current_time()
                await self._one_life()
                if self._refusal is not None:
                    break
                pause = FIRST_PAUSE_S if trio.current_time() - began > LAST_PAUSE_S else min(pause * 2, LAST_PAUSE_S)
                self.restarts += 1
                await trio.sleep(pause)
        finally:
            if self._refusal is None:
                self.state = "closed"
                self._refusal = ModelError("the model was closed")
            self._opened.set()
            self._desk.fail_all(self._refusal)

    async def ready(self) -> None:
        """Wait until the model is loaded.

        Raises:
            ModelError: it can't be used; `remedy` says what to do.
        """
        await self._opened.wait()
        if self._refusal is not None:
            raise self._refusal.copy()

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        """See `Model.generate`. When cancelled, the engine stops working on it within a step."""
        message = wire.Generate(
            id=self._number(),
            system=request.system,
            prompt=request.prompt,
            schema=request.schema,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            seed=request.seed,
            priority=request.priority,
        )
        answer = await self._ask(request.agent, request.purpose, message, on_text)
        assert isinstance(answer, wire.Done)
        return Reply(
            text=answer.text,
            value=answer.value,
            tokens_in=answer.tokens_in,
            tokens_cached=answer.tokens_cached,
            tokens_out=answer.tokens_out,
            cut=answer.cut,
        )

    async def likelihood(self, request: Likelihood) -> list[float]:
        """See `Model.likelihood`. What was weighed before, or is being weighed for another, isn't weighed again."""
        texts = list(request.continuations)

        async def weigh() -> list[float]:
            message = wire.Weigh(
                id=self._number(), prefix=request.prefix, continuations=texts, priority=request.priority
            )
            answer = await self._ask(request.agent, "likelihood", message, None)
            assert isinstance(answer, wire.Weighed)
            return answer.means

        return await self._memo.get(request.prefix, texts, weigh)

    # Requests

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    async def _ask(
        self, agent: str, kind: str, message: wire.Generate | wire.Weigh, on_text: Callable[[str], None] | None
    ) -> Any:
        if self._refusal is not None:
            raise self._refusal.copy()
        ticket = Ticket(agent, kind, message, on_text)
        self._desk.push(ticket)
        self._pump()
        try:
            await ticket.ended.wait()
        except trio.Cancelled:
            if self._desk.withdraw(ticket):
                self._say(wire.Cancel(ticket.number))
            raise
        if ticket.error is not None:
            raise ticket.error
        return ticket.answer

    def _pump(self) -> None:
        """Send what there are places for."""
        while self.state == "ready" and (ticket := self._desk.next()) is not None:
            self._say(ticket.message)

    def _say(self, message: wire.ToEngine) -> None:
        if self._outgoing is not None:
            try:
                self._outgoing.send_nowait(message)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return  # The engine is dying: whoever waits is told by the reading side.

    # The process

    async def _prepare(self) -> None:
        """Take the faster copy, if there should be one."""
        if self._file is not None and self._copies is not None:
            made = await swift.prepare(self._file, self._settings, self._copies)
            self._path = made.file.path
            if made.trouble:
                self._notice(made.trouble)

    async def _one_life(self) -> None:
        """Start an engine and serve until it's gone; always ends it."""
        try:
            # Reads the file's header: not on the loop that all peers share.
            await trio.to_thread.run_sync(models.check, self._path)
        except ModelError as error:
            self._refuse(str(error), error.remedy)
            return
        try:
            self._process = await process.spawn(self._log)
        except OSError as error:
            self._refuse(f"the engine can't be started: {reason_of(error)}", "")
            return
        try:
            send, receive = trio.open_memory_channel[wire.ToEngine](100_000)
            self._outgoing = send
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, self._process, receive)
                nursery.start_soon(self._watch, self._process)
                self._say(self._order())
                await self._read(self._process)
                nursery.cancel_scope.cancel()
            with trio.move_on_after(GOODBYE_S):
                await self._process.wait()
            self._died(self._process.returncode)
        finally:
            await self._end(self._process)

    def _order(self) -> wire.Open:
        settings = self._settings
        measured = self._notebook.read(tuning.key(self._path, settings)) if self._notebook else None
        return wire.Open(
            path=str(self._path),
            threads=settings.threads,
            context=settings.context,
            slots=settings.slots,
            gpu_layers=settings.gpu_layers,
            width=tuning.choose_width(measured.speeds, settings.slots) if measured else 0,
            measure=self._notebook is not None and measured is None,
        )

    async def _watch(self, child: trio.Process) -> None:
        """Kill an engine that gives no sign of life though it has something to do."""
        self._hung = ""
        self.vigil = Vigil(self._patience_s)
        self.vigil.heard(START_S)
        before = trio.current_time()
        while True:
            await trio.sleep(TICK_S)
            now = trio.current_time()
            if self.vigil.tick(now - before, self.state != "ready" or self._desk.working > 0):
                self._hung = f"the engine hung: no sign of life for {self.vigil.silence:.0f} s"
                child.kill()
                return
            before = now

    async def _write(self, child: trio.Process, channel: trio.MemoryReceiveChannel[wire.ToEngine]) -> None:
        assert child.stdin is not None
        async for message in channel:
            try:
                await child.stdin.send_all(wire.frame(message))
            except trio.BrokenResourceError:
                return

    async def _read(self, child: trio.Process) -> None:
        """Take messages until the engine is gone or talks nonsense."""
        assert child.stdout is not None
        unframer = wire.Unframer()
        while True:
            try:
                data = await child.stdout.receive_some(65_536)
                for message in unframer.feed(bytes(data)):
                    self._hear(message)
            except trio.BrokenResourceError:
                return
            except wire.WireError as error:
                self._notice(f"the engine talks nonsense ({error}): it's started again")
                child.kill()
                return
            if not data:
                return

    def _hear(self, message: wire.FromEngine) -> None:
        self.vigil.heard(message.seconds if isinstance(message, wire.Beat) else 0.0)
        if isinstance(message, wire.Beat):
            return
        if isinstance(message, wire.Ready):
            self._hear_ready(message)
        elif isinstance(message, wire.Refused):
            self._refuse(message.reason, message.remedy)
        elif isinstance(message, wire.Piece):
            ticket = self._desk.sent(message.id)
            if ticket is not None:
                ticket.hear(message.text)
        else:
            ticket = self._desk.done(message.id)
            if ticket is not None:
                self._hear_end(ticket, message)
        self._pump()

    def _hear_ready(self, message: wire.Ready) -> None:
        self._desk.slots, self._desk.express, self.width = message.slots, message.express, message.width
        self.context, self.state = message.context, "ready"
        for each in message.notices:
            self._notice(each)
        if self._notebook is not None and message.speeds:
            self._notebook.write(
                tuning.key(self._path, self._settings), tuning.Measured(message.prefill, tuple(message.speeds))
            )
        self._opened.set()

    def _hear_end(self, ticket: Ticket, message: wire.Done | wire.Weighed | wire.Failed | wire.Stopped) -> None:
        if isinstance(message, wire.Failed):
            ticket.fail(ModelError(message.reason, message.remedy))
            return
        if self._on_cost is not None:
            self._on_cost(ticket.cost(message))
        ticket.end(None if isinstance(message, wire.Stopped) else message)

    def _refuse(self, reason: str, remedy: str) -> None:
        self.state = "refused"
        self._refusal = ModelError(reason, remedy, away=True)
        self._notice(reason)
        self._opened.set()

    def _died(self, code: int | None) -> None:
        """The engine is gone without having been told to."""
        if self._refusal is not None:
            return
        reason, remedy = process.remedy_for(-9 if code is None else code)
        if self._hung:
            reason, remedy = self._hung, "if it happens again, try another model or update llama-cpp-python"
        if not self._opened.is_set():
            # It never worked: starting it again would kill it again, and the person waits.
            self._refuse(f"{reason} while it loaded the model", remedy)
            return
        self.state = "restarting"
        self._notice(f"{reason}: it's started again" + self._desk.lose(ModelError(reason, remedy)))

    async def _end(self, child: trio.Process) -> None:
        """Let the child go: it ends when its stdin closes, and if not it's killed."""
        self._outgoing = None
        self._process = None
        with trio.CancelScope(shield=True):
            if child.stdin is not None:
                await child.stdin.aclose()
            with trio.move_on_after(GOODBYE_S):
                await child.wait()
            if child.returncode is None:
                child.kill()
                await child.wait()
            if child.stdout is not None:
                await child.stdout.aclose()

    def _notice(self, text: str) -> None:
        self.notices = [*self.notices[-19:], text]
