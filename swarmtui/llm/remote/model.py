"""A model on a server, as the agents see models."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
import trio

from swarmtui.llm import grammar
from swarmtui.llm.fair import FairQueue
from swarmtui.llm.memo import Memo
from swarmtui.llm.model import Likelihood, ModelError, Reply, Request
from swarmtui.llm.remote import answers
from swarmtui.llm.remote.address import Address
from swarmtui.llm.remote.http import READ_S, EndpointError, Line
from swarmtui.llm.remote.likelihood import NO_LIKELIHOODS, Likelihoods, Way
from swarmtui.plaintext import one_line

T = TypeVar("T")

SLOTS = 4
"""Requests sent at the same time, unless the settings or the server say otherwise."""
TRIES = 5
FIRST_PAUSE_S, LAST_PAUSE_S = 1.0, 30.0
"""Between tries; it doubles."""
MEETING_TRIES = 3
CHARACTERS_PER_TOKEN = 4

Form: TypeAlias = Literal["json_schema", "json_object", "prompt"]
FORMS: tuple[Form, ...] = ("json_schema", "json_object", "prompt")
"""Ways to ask for JSON, the surest first; a server that refuses one is asked in the next."""


class RemoteModel:
    """Implements `llm.model.Model` over a server that speaks OpenAI's protocol. `run` must be running.

    Requests wait here for their turn, as with a local engine. One that fails for a reason that may pass is sent again,
    after a pause that grows; one that's cancelled closes its connection, so that the server stops working on it.
    """

    def __init__(
        self,
        address: Address,
        *,
        key: str = "",
        key_variable: str = "",
        slots: int = 0,
        read_s: float = READ_S,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        """
        Args:
            address: the server's, and the model's name there.
            key: a secret that the server wants; '' for none.
            key_variable: the environment variable it comes from, for messages.
            slots: requests at the same time; 0: as the server says, else 4.
            read_s: longest silence of the server.
            first_pause_s: before the second try.
        """
        self.address = address
        self._line = Line(address, key, key_variable, read_s)
        self._first_pause_s = first_pause_s
        self._wanted_slots = slots
        self._free = 1
        self._queue: FairQueue[trio.Event] = FairQueue()
        self._model = address.model
        self._likelihoods = Likelihoods(self._line, address.model)
        self._memo = Memo()
        self._form = 0
        self._counts_usage = True
        self._tells_ends = False
        """It has said why an answer ended: one where it doesn't say so was broken off."""
        self._llama_server = False
        self._opened = trio.Event()
        self._refusal: ModelError | None = None
        self._standing: list[str] = []
        self._trouble = ""
        self.slots = 1
        self.context = 0
        """Tokens per request; 0 where the server doesn't tell."""

    @property
    def name(self) -> str:
        """The model's name at the server. (Not the address: peers on other machines are told this name.)"""
        short = re.split(r"[/\\]", self._model)[-1] if self._model.lower().endswith(".gguf") else self._model
        return f"{one_line(re.sub(r'[.]gguf$', '', short, flags=re.IGNORECASE))[:100] or 'model'} (server)"

    @property
    def judging(self) -> Way:
        """How likelihoods are read; 'none': scorers ask for written marks."""
        return self._likelihoods.way

    @property
    def notices(self) -> list[str]:
        """What a person should know, and what's wrong now."""
        return [*self._standing, *([self._trouble] if self._trouble else [])]

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Meet the server, then keep the way to it open until cancelled. Never raises on its own."""
        task_status.started()
        try:
            async with self._line:
                try:
                    await self._meet()
                except ModelError as error:
                    self._refusal = error
                    return
                self._opened.set()
                await trio.sleep_forever()
        finally:
            self._refusal = self._refusal or ModelError("the model was closed")
            self._opened.set()

    async def ready(self) -> None:
        """Wait until the server has been met.

        Raises:
            ModelError: it can't be used; `remedy` says what to do.
        """
        await self._opened.wait()
        if self._refusal is not None:
            raise self._refusal.copy()

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        """See `Model.generate`."""
        await self.ready()
        if request.schema is not None:
            grammar.check(request.schema)
        async with self._place(request.agent, request.priority):
            if request.schema is None:
                return await self._insist(lambda: self._write(request, [], on_text))
            return await self._fill(request, request.schema, on_text)

    async def likelihood(self, request: Likelihood) -> list[float]:
        """See `Model.likelihood`. What was weighed before, or is being weighed for another, isn't weighed again."""
        await self.ready()
        if self._likelihoods.way == "none":
            raise ModelError(NO_LIKELIHOODS)

        async def weigh() -> list[float]:
            async with self._place(request.agent, request.priority):
                return [
                    await self._insist(lambda text=text: self._likelihoods.mean(request.prefix, text))  # type: ignore[misc]
                    for text in request.continuations
                ]

        return await self._memo.get(request.prefix, request.continuations, weigh)

    # Meeting the server

    async def _meet(self) -> None:
        """Learn what it has and can.

        Raises:
            ModelError: it isn't there, or hasn't the model.
        """
        await self._insist(self._choose_model, MEETING_TRIES)
        self._likelihoods = Likelihoods(self._line, self._model)
        try:
            props = await self._line.get(f"{self.address.root}/props")
        except EndpointError:
            props = None
        slots = 0
        if isinstance(props, dict):
            self._llama_server = True
            settings = props.get("default_generation_settings")
            self.context = _whole(settings.get("n_ctx") if isinstance(settings, dict) else 0)
            slots = min(64, _whole(props.get("total_slots")))
        await self._insist(self._likelihoods.find_way, MEETING_TRIES)
        # llama_cpp.server breaks an answer off as soon as another request comes.
        slots = slots or (1 if self._likelihoods.by_llama_cpp_python else SLOTS)
        self.slots = self._free = self._wanted_slots or slots
        self._standing = [self.address.leaves] if self.address.leaves else []
        if self.judging == "none":
            self._standing.append(f"{self.name} offers no likelihoods: scorers ask it for written marks.")
        self._trouble = ""

    async def _choose_model(self) -> None:
        try:
            answer = await self._line.get(f"{self.address.base}/models")
        except EndpointError as error:
            if error.status == 404 and self._model:
                return  # Some servers list nothing; what's asked for will show.
            raise
        listed = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(listed, list):
            raise EndpointError(
                f"{self.address.place} lists no models: it isn't a model server's API",
                "check the address: it mostly ends in /v1",
            )
        names = [each["id"] for each in listed if isinstance(each, dict) and isinstance(each.get("id"), str)]
        shown = ", ".join(one_line(name)[:60] for name in names[:8]) + (" …" if len(names) > 8 else "")
        if self._model:
            close = [each for each in names if each == self._model] or [
                each for each in names if each.casefold().startswith(self._model.casefold())
            ]
            if names and not close:
                raise EndpointError(
                    f"{self.address.place} has no model {self._model}", f"it has: {shown}" if names else ""
                )
            self._model = close[0] if close else self._model
        elif len(names) == 1:
            self._model = names[0]
        elif names:
            raise EndpointError(
                f"{self.address.place} has several models", f"name one: {self.address.base}#{names[0]}; it has: {shown}"
            )
        else:
            raise EndpointError(f"{self.address.place} has no model", "load or pull one there")

    # Asking it

    async def _insist(self, ask: Callable[[], Awaitable[T]], tries: int = TRIES) -> T:
        """Ask again after failures that may pass."""
        pause = self._first_pause_s
        left = tries
        while True:
            left -= 1
            try:
                found = await ask()
            except EndpointError as error:
                if not error.again:
                    raise
                self._trouble = f"{error.in_words}{'; it is asked again' if left else ''}"
                if not left:
                    raise
                await trio.sleep(max(pause, error.pause))
                pause = min(LAST_PAUSE_S, 2 * pause)
            else:
                self._trouble = ""
                return found

    async def _fill(self, request: Request, schema: dict[str, Any], on_text: Callable[[str], None] | None) -> Reply:
        """An answer that is valid against the schema, asked for up to three times."""
        wrong = ""
        for number in range(3):
            again = msgspec.structs.replace(request, seed=request.seed + number)
            hints = [] if not wrong else [f"What you wrote before can't be used: {wrong}."]
            reply = await self._insist(lambda again=again, hints=hints: self._form_fitting(again, hints, on_text))  # type: ignore[misc]
            try:
                value = answers.read(reply.text, schema)
            except answers.Unusable as error:
                wrong = str(error)
            else:
                return msgspec.structs.replace(reply, value=value, text=grammar.dumps(value))
        raise ModelError(
            f"{self.name} doesn't answer in the form that was asked: {one_line(wrong)[:200]}",
            "choose a model that keeps to a JSON schema, or a server that makes it",
        )

    async def _form_fitting(self, request: Request, hints: list[str], on_text: Callable[[str], None] | None) -> Reply:
        """Ask for JSON in the surest form that the server takes."""
        while True:
            try:
                return await self._write(request, hints, on_text)
            except EndpointError as error:
                refuses_form = error.status in (400, 415, 422, 500, 501) and re.search(
                    r"response_format|json_schema|json_object|schema|grammar", error.said
                )
                if not refuses_form or self._form == len(FORMS) - 1:
                    raise
                self._form += 1

    async def _write(self, request: Request, hints: list[str], on_text: Callable[[str], None] | None) -> Reply:
        """One answer, streamed."""
        pieces: list[str] = []
        usage: dict[str, Any] = {}
        finish, thought = "", False
        try:
            async for event in self._line.events(f"{self.address.base}/chat/completions", self._body(request, hints)):
                if not isinstance(event, dict):
                    continue
                if event.get("error"):
                    raise EndpointError(f"{self.address.place} failed: {_told(event['error'])}", again=True)
                usage = event["usage"] if isinstance(event.get("usage"), dict) else usage
                text, thinks, ended = _piece(event)
                finish, thought = ended or finish, thought or thinks
                if text:
                    pieces.append(text)
                    if on_text is not None:
                        on_text(text)
        except EndpointError as error:
            if self._counts_usage and error.status in (400, 422) and "stream_options" in error.said:
                self._counts_usage = False
                return await self._write(request, hints, on_text)
            raise
        text = "".join(pieces)
        if not text.strip():
            raise self._silent(thought)
        if self._tells_ends and not finish:
            raise EndpointError(f"{self.address.place} broke an answer off", "see the server's own log", again=True)
        self._tells_ends = bool(finish)
        return _reply(request, text, usage, len(pieces), finish == "length")

    def _silent(self, thought: bool) -> EndpointError:
        if thought:
            return EndpointError(
                f"{self.name} spent its answer on thinking",
                "choose a model that doesn't think, or switch thinking off at the server",
            )
        return EndpointError(f"{self.address.place} sent an empty answer", "see the server's own log", again=True)

    def _body(self, request: Request, hints: list[str]) -> dict[str, Any]:
        prompt = request.prompt
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "stream": True,
        }
        if self._counts_usage:
            body["stream_options"] = {"include_usage": True}
        if self._llama_server:
            body |= {"cache_prompt": True, "chat_template_kwargs": {"enable_thinking": False}}
        if request.schema is not None:
            form = FORMS[self._form]
            if form == "json_schema":
                named = {"name": "answer", "schema": request.schema}
                body["response_format"] = {"type": "json_schema", "json_schema": named}
            elif form == "json_object":
                body["response_format"] = {"type": "json_object", "schema": request.schema}
            if form != "json_schema" or hints:
                hints = [*hints, "Answer with JSON alone, valid against this schema:", grammar.dumps(request.schema)]
        body["messages"] = [
            {"role": "system", "content": request.system.strip() or "You help."},
            {"role": "user", "content": "\n\n".join([prompt.strip(), *(["\n".join(hints)] if hints else [])])},
        ]
        return body

    @asynccontextmanager
    async def _place(self, agent: str, priority: int) -> AsyncIterator[None]:
        """A slot, in fair turn."""
        if self._free:
            self._free -= 1
        else:
            turn = trio.Event()
            self._queue.push(agent, priority, turn)
            try:
                await turn.wait()
            except trio.Cancelled:
                if not self._queue.remove(turn):
                    self._leave()
                raise
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        if len(self._queue):
            self._queue.pop().set()
        else:
            self._free += 1


def _piece(event: dict[str, Any]) -> tuple[str, bool, str]:
    """(text, whether it thinks, why it ended) of an event."""
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    delta = choice.get("delta") or choice.get("message") or {}
    if not isinstance(delta, dict):
        return "", False, ""
    text, ended = delta.get("content"), choice.get("finish_reason")
    thinks = bool(delta.get("reasoning_content") or delta.get("reasoning"))
    return text if isinstance(text, str) else "", thinks, ended if isinstance(ended, str) else ""


def _reply(request: Request, text: str, usage: dict[str, Any], pieces: int, cut: bool) -> Reply:
    details = usage.get("prompt_tokens_details")
    cached = _whole(details.get("cached_tokens")) if isinstance(details, dict) else 0
    guess = (len(request.system) + len(request.prompt)) // CHARACTERS_PER_TOKEN
    return Reply(
        text=text,
        tokens_in=_whole(usage.get("prompt_tokens")) or guess,
        tokens_cached=cached,
        tokens_out=_whole(usage.get("completion_tokens")) or pieces,
        cut=cut,
    )


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0


def _told(error: Any) -> str:
    text = error.get("message", "") if isinstance(error, dict) else error
    return one_line(str(text))[:300] or "it doesn't say why"
