"""A model server on loopback that does what a test tells it to, well or badly, in the test's own trio loop."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio

NAMES = ("small-1B-instruct",)


@dataclass
class Asked:
    """A request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    """What to send: bytes one after the other; then the connection is closed."""

    pieces: list[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    hang: bool = False
    """Keep the connection open at the end, and wait until the other side closes it."""


def data(value: Any, status: int = 200, **headers: str) -> Answer:
    """An answer of JSON."""
    return Answer([json.dumps(value).encode()], status, {k.replace("_", "-"): v for k, v in headers.items()})


def refusal(status: int, message: str, **headers: str) -> Answer:
    """An error as OpenAI's protocol has them."""
    return data({"error": {"message": message, "type": "x"}}, status, **headers)


def spoken(text: str, finish: str = "stop", pieces: int = 3, hang: bool = False, **delta: str) -> Answer:
    """A streamed chat answer."""
    size = max(1, -(-len(text) // pieces))
    parts = [text[i : i + size] for i in range(0, len(text), size)]
    events = [{"choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]}]
    events += [{"choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]} for part in parts]
    if not hang:
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        events.append({"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 7}})
    lines = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    return Answer(lines if hang else [*lines, b"data: [DONE]\n\n"], kind="text/event-stream", hang=hang)


Handler = Callable[[Asked], Awaitable[Answer]]


class Server:
    """Answers GET /v1/models by itself and the rest as told: the next of `answers`, else `handler`."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.handler: Handler | None = None
        self.names: tuple[str, ...] = NAMES
        self.asked: list[Asked] = []
        self.busy = 0
        self.busiest = 0
        self.gone = trio.Event()
        """Set when the other side has closed a connection that hung."""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def bodies(self, path: str = "/v1/chat/completions") -> list[Any]:
        """What was asked at a path."""
        return [each.body for each in self.asked if each.path == path]

    async def answer(self, asked: Asked) -> Answer:
        if asked.path == "/v1/models" and asked.method == "GET":
            return data({"object": "list", "data": [{"id": name} for name in self.names]})
        if asked.path == "/v1/chat/completions" and self.answers:
            return self.answers.pop(0)
        return await self.handler(asked) if self.handler else refusal(404, "Not Found")

    async def serve(self, stream: trio.SocketStream) -> None:
        try:
            asked = await _read(stream)
            if asked is None:
                return
            self.asked.append(asked)
            self.busy += 1
            self.busiest = max(self.busiest, self.busy)
            try:
                await self._send(stream, await self.answer(asked))
            finally:
                self.busy -= 1
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.gone.set()
        finally:
            await trio.aclose_forcefully(stream)

    async def _send(self, stream: trio.SocketStream, answer: Answer) -> None:
        headers = {"Content-Type": answer.kind, "Connection": "close", **answer.headers}
        head = f"HTTP/1.1 {answer.status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
        await stream.send_all(head.encode())
        for piece in answer.pieces:
            await stream.send_all(piece)
        if answer.hang:
            while await stream.receive_some(1_024):
                pass
            self.gone.set()


async def _read(stream: trio.SocketStream) -> Asked | None:
    got = b""
    while b"\r\n\r\n" not in got:
        more = await stream.receive_some(65_536)
        if not more:
            return None
        got += more
    head, body = got.split(b"\r\n\r\n", 1)
    first, *lines = head.decode().split("\r\n")
    headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += await stream.receive_some(65_536)
    method, path, _ = first.split(" ")
    return Asked(method, path, headers, json.loads(body) if body else None)


@asynccontextmanager
async def server():
    """A running server; ended on the way out."""
    made = Server()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, made.serve, 0, host="127.0.0.1"))
        made.port = listeners[0].socket.getsockname()[1]
        yield made
        nursery.cancel_scope.cancel()
