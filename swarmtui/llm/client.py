"""A model in an engine process, shared by the agents of one trio loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import trio

from swarmtui.llm import models, process, wire
from swarmtui.llm.fair import FairQueue
from swarmtui.llm.machine import EngineNumbers
from swarmtui.llm.memo import Memo
from swarmtui.llm.model import Likelihood, ModelError, Reply, Request

RATE_WINDOW_S = 5.0
FIRST_PAUSE_S, LAST_PAUSE_S = 0.5, 30.0
GOODBYE_S = 2.0

State: TypeAlias = Literal["starting", "ready", "restarting", "refused", "closed"]


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine runs. 0 means: let it choose."""

    threads: int = 0
    context: int = 0
    """Tokens per request, prompt and answer (2,048 if 0)."""
    slots: int = 0
    """Requests worked on at the same time; the KV cache grows with it (4 if 0)."""
    gpu_layers: int = 0


class _Ticket:
    """A request on its way."""

    def __init__(self, number: int, message: wire.Generate | wire.Weigh, on_text: Callable[[str], None] | None) -> None:
        self.number = number
        self.message = message
        self.on_text = on_text
        self.ended = trio.Event()
        self.answer: wire.Done | wire.Weighed | None = None
        self.error: ModelError | None = None

    def hear(self, text: str) -> None:
        """Hand a piece on. A listener that raises isn't asked again: its fault must not end the model for all."""
        if self.on_text is not None:
            try:
                self.on_text(text)
            except Exception:
                self.on_text = None

    def fail(self, error: ModelError) -> None:
        """End it without an answer."""
        self.error = error
        self.ended.set()


class EngineModel:
    """Implements `llm.model.Model` over an engine process. `run` must be running for anything to happen.

    Requests wait here, not in the engine: only as many as it has slots are sent, so that when it dies only those are
    lost. It's then started again, after a pause that grows while it keeps dying.
    """

    def __init__(
        self, file: models.ModelFile | Path, settings: EngineNumbers | None = None, *, log: Path | None = None
    ) -> None:
        self._path = file.path if isinstance(file, models.ModelFile) else file
        self._name = file.name if isinstance(file, models.ModelFile) else file.stem
        self._settings = settings or EngineSettings()
        self._log = log
        """Where llama.cpp's messages go; None drops them."""
        self._process: trio.Process | None = None
        self._outgoing: trio.MemorySendChannel[wire.ToEngine] | None = None
        self._queue: FairQueue[_Ticket] = FairQueue()
        self._sent: dict[int, _Ticket] = {}
        self._slots = 0
        self._numbers = 0
        self._rates: deque[tuple[float, int]] = deque()
        self._memo = Memo()
        self._opened = trio.Event()
        self._refusal: ModelError | None = None
        self.state: State = "starting"
        self.notices: list[str] = []
        """What a person should know, newest last (at most 20)."""
        self.restarts = 0
        self.context = 0
        """Tokens per request, once ready."""

    @property
    def name(self) -> str:
        """Short name for the screen."""
        return self._name

    @property
    def slots(self) -> int:
        """Requests that are worked on at the same time, once ready."""
        return self._slots

    @property
    def waiting(self) -> int:
        """Requests without a slot."""
        return len(self._queue)

    @property
    def working(self) -> int:
        """Requests in the engine."""
        return len(self._sent)

    @property
    def pid(self) -> int:
        """The engine's process id; 0 if there's none now."""
        return self._process.pid if self._process else 0

    @property
    def tokens_per_second(self) -> float:
        """Tokens generated per second, over the last five."""
        now = trio.current_time()
        while self._rates and self._rates[0][0] < now - RATE_WINDOW_S:
            self._rates.popleft()
        return sum(count for _, count in self._rates) / RATE_WINDOW_S

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep an engine running until cancelled; then it's ended and all waiting requests fail.

        Returns early, with `state` 'refused', when the model can't be used at all. Never raises on its own.
        """
        task_status.started()
        pause = FIRST_PAUSE_S
        try:
            while self._refusal is None:
                began = trio.current_time()
                await self._one_life()
                if self._refusal is not None:
                    break
                pause = FIRST_PAUSE_S if trio.current_time() - began > LAST_PAUSE_S else min(pause * 2, LAST_PAUSE_S)
                self.restarts += 1
                await trio.sleep(pause)
            self._fail_all(self._refusal)
        finally:
            if self._refusal is None:
                self.state = "closed"
                self._refusal = ModelError("the model was closed")
            self._opened.set()
            self._fail_all(self._refusal)

    async def ready(self) -> None:
        """Wait until the model is loaded.

        Raises:
            ModelError: it can't be used; `remedy` says what to do.
        """
        await self._opened.wait()
        if self._refusal is not None:
            raise ModelError(str(self._refusal), self._refusal.remedy)

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
        )
        answer = await self._ask(request.agent, request.priority, message, on_text)
        assert isinstance(answer, wire.Done)
        return Reply(
            text=answer.text,
            value=answer.value,
            tokens_in=answer.tokens_in,
            tokens_cached=answer.tokens_cached,
            tokens_out=answer.tokens_out,
            seconds=answer.seconds,
            cut=answer.cut,
        )

    async def likelihood(self, request: Likelihood) -> list[float]:
        """See `Model.likelihood`. What was weighed before, or is being weighed for another, isn't weighed again."""
        texts = list(request.continuations)

        async def weigh() -> list[float]:
            message = wire.Weigh(id=self._number(), prefix=request.prefix, continuations=texts)
            answer = await self._ask(request.agent, request.priority, message, None)
            assert isinstance(answer, wire.Weighed)
            return answer.means

        return await self._memo.get(request.prefix, texts, weigh)

    # Requests

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    async def _ask(
        self, agent: str, priority: int, message: wire.Generate | wire.Weigh, on_text: Callable[[str], None] | None
    ) -> Any:
        if self._refusal is not None:
            raise ModelError(str(self._refusal), self._refusal.remedy)
        ticket = _Ticket(message.id, message, on_text)
        self._queue.push(agent, priority, ticket)
        self._pump()
        try:
            await ticket.ended.wait()
        except trio.Cancelled:
            ticket.on_text = None
            if not self._queue.remove(ticket) and ticket.number in self._sent:
                self._say(wire.Cancel(ticket.number))
            raise
        if ticket.error is not None:
            raise ticket.error
        return ticket.answer

    def _pump(self) -> None:
        """Send what there are slots for."""
        while self.state == "ready" and len(self._sent) < self._slots and len(self._queue):
            ticket = self._queue.pop()
            self._sent[ticket.number] = ticket
            self._say(ticket.message)

    def _say(self, message: wire.ToEngine) -> None:
        if self._outgoing is not None:
            try:
                self._outgoing.send_nowait(message)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                # The engine is dying: whoever waits is told by the reading side.
                return

    def _fail_sent(self, error: ModelError) -> None:
        sent, self._sent = self._sent, {}
        for ticket in sent.values():
            ticket.fail(ModelError(str(error), error.remedy))

    def _fail_all(self, error: ModelError) -> None:
        self._fail_sent(error)
        while len(self._queue):
            self._queue.pop().fail(ModelError(str(error), error.remedy))

    # The process

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
            self._refuse(f"the engine can't be started: {error}", "")
            return
        try:
            send, receive = trio.open_memory_channel[wire.ToEngine](100_000)
            self._outgoing = send
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, self._process, receive)
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
        return wire.Open(
            path=str(self._path),
            threads=settings.threads,
            context=settings.context,
            slots=settings.slots,
            gpu_layers=settings.gpu_layers,
        )

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
        if isinstance(message, wire.Ready):
            self._slots, self.context, self.state = message.slots, message.context, "ready"
            for each in message.notices:
                self._notice(each)
            self._opened.set()
        elif isinstance(message, wire.Refused):
            self._refuse(message.reason, message.remedy)
        elif isinstance(message, wire.Piece):
            self._rates.append((trio.current_time(), message.tokens))
            ticket = self._sent.get(message.id)
            if ticket is not None and message.text:
                ticket.hear(message.text)
        else:
            ticket = self._sent.pop(message.id, None)
            if ticket is not None:
                if isinstance(message, wire.Failed):
                    ticket.fail(ModelError(message.reason, message.remedy))
                elif isinstance(message, wire.Done | wire.Weighed):
                    ticket.answer = message
                ticket.ended.set()
        self._pump()

    def _refuse(self, reason: str, remedy: str) -> None:
        self.state = "refused"
        self._refusal = ModelError(reason, remedy)
        self._notice(reason)
        self._opened.set()

    def _died(self, code: int | None) -> None:
        """The engine is gone without having been told to."""
        if self._refusal is not None:
            return
        reason, remedy = process.remedy_for(-9 if code is None else code)
        if not self._opened.is_set():
            # It never worked: starting it again would kill it again, and the person waits.
            self._refuse(f"{reason} while it loaded the model", remedy)
            return
        self.state = "restarting"
        lost = len(self._sent)
        self._notice(f"{reason}: {lost} request{'' if lost == 1 else 's'} lost, it's started again")
        self._fail_sent(ModelError(reason, remedy))

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
