"""Requests to a model server: what it answers as data, what goes wrong as a line for people.

httpx2 does the HTTP: it's typed, runs on trio, and closes the connection when a request is cancelled, which is how a
server learns that it may stop. Nothing that a server sends is trusted: sizes are bounded, texts are made plain, and
redirects aren't followed (they could lead the texts elsewhere).
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec

from swarmtui.llm.model import ModelError
from swarmtui.llm.remote.address import Address
from swarmtui.plaintext import one_line

CONNECT_S = 10.0
READ_S = 300.0
"""Longest silence: a server that has no slot free, or reads a long prompt, says nothing for that time."""
MAX_BODY = 32 * 1024 * 1024
MAX_LINE = 1024 * 1024
MAX_PAUSE_S = 60.0
"""Longest that a server may ask to be left alone; then it's an error like others."""


class EndpointError(ModelError):
    """A request that failed.

    `again` says that it may succeed later, `pause` how long the server wants to be left alone (seconds; 0: it doesn't
    say), `status` its HTTP status (0: there was no answer), `said` the server's own words.
    """

    def __init__(
        self,
        reason: str,
        remedy: str = "",
        *,
        again: bool = False,
        pause: float = 0.0,
        status: int = 0,
        said: str = "",
        away: bool = False,
    ) -> None:
        super().__init__(reason, remedy, away=away)
        self.again = again
        self.pause = pause
        self.status = status
        self.said = said


class Line:
    """A way to one server. Used within `async with`."""

    def __init__(self, address: Address, key: str, key_variable: str, read_s: float = READ_S) -> None:
        """
        Args:
            address: the server's.
            key: sent as a bearer token; '' for none. It stands in no message.
            key_variable: where the key comes from, for the remedy.
            read_s: longest silence before a request fails.
        """
        self.address = address
        self._key_variable = key_variable
        self._read_s = read_s
        self._client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else None,
            timeout=httpx2.Timeout(read_s, connect=CONNECT_S, pool=None),
            follow_redirects=False,
            # A proxy that is meant for the internet has no business between this machine and itself.
            trust_env=not address.here,
        )

    async def __aenter__(self) -> Line:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._client.__aexit__(*exc)

    async def get(self, url: str) -> Any:
        """The JSON at an address.

        Raises:
            EndpointError: see there.
        """
        async with self._send("GET", url, None) as response:
            return _parsed(await self._whole(response), self.address.place)

    async def post(self, url: str, body: Mapping[str, Any]) -> Any:
        """What is answered to a body.

        Raises:
            EndpointError: see there.
        """
        async with self._send("POST", url, body) as response:
            return _parsed(await self._whole(response), self.address.place)

    async def events(self, url: str, body: Mapping[str, Any]) -> AsyncIterator[Any]:
        """The events of a streamed answer as data; a server that doesn't stream gives its whole answer as one.

        Raises:
            EndpointError: see there.
        """
        async with self._send("POST", url, body) as response:
            if "json" in response.headers.get("content-type", ""):
                yield _parsed(await self._whole(response), self.address.place)
                return
            async for line in self._lines(response):
                field, _, value = line.partition(b":")
                if field != b"data":
                    continue
                if value.strip() == b"[DONE]":
                    return
                yield _parsed(value, self.address.place)

    @asynccontextmanager
    async def _send(self, method: str, url: str, body: Mapping[str, Any] | None) -> AsyncIterator[httpx2.Response]:
        """A response that is good so far; all that can go wrong on the way becomes an EndpointError."""
        host = self.address.place
        try:
            async with self._client.stream(method, url, json=body) as response:
                if not response.is_success:
                    raise self._refused(response, await self._start(response))
                yield response
        except httpx2.ConnectTimeout:
            raise EndpointError(
                f"{host} can't be reached: no answer within {CONNECT_S:.0f} s", _REACH, again=True, away=True
            ) from None
        except httpx2.ReadTimeout:
            raise EndpointError(
                f"{host} said nothing for {self._read_s:.0f} s",
                "give the server fewer agents (agents.…, llm.slots), or a smaller model",
                again=True,
            ) from None
        except httpx2.ConnectError as error:
            raise EndpointError(f"{host} can't be reached: {_cause(error)}", _REACH, again=True, away=True) from None
        except (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.TimeoutException) as error:
            raise EndpointError(f"the connection to {host} broke: {_cause(error)}", again=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise EndpointError(f"{host} can't be asked: {_cause(error)}", _REACH) from None

    async def _start(self, response: httpx2.Response) -> bytes:
        """The beginning of an answer that is an error."""
        data = bytearray()
        async for chunk in response.aiter_bytes(4_096):
            data += chunk
            if len(data) >= 16_384:
                break
        return bytes(data)

    async def _whole(self, response: httpx2.Response) -> bytes:
        data = bytearray()
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > MAX_BODY:
                raise EndpointError(f"{self.address.place} answered with more than {MAX_BODY >> 20} MiB")
        return bytes(data)

    async def _lines(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        rest = bytearray()
        total = 0
        async for chunk in response.aiter_bytes():
            total += len(chunk)
            rest += chunk
            *lines, last = rest.split(b"\n")
            rest = bytearray(last)
            if len(rest) > MAX_LINE or total > MAX_BODY:
                raise EndpointError(f"{self.address.place} answers without end")
            for line in lines:
                yield bytes(line).rstrip(b"\r")
        if rest:
            yield bytes(rest)

    def _refused(self, response: httpx2.Response, body: bytes) -> EndpointError:
        """What an HTTP status means, and what to do about it."""
        status, host, said = response.status_code, self.address.place, _words(body)
        tail = f": {said}" if said else ""
        if status in (401, 403):
            reason = f"{host} wants another key ({status}{tail})"
            remedy = f"put the right one into {self._key_variable}"
            return EndpointError(reason, remedy, status=status, said=said, away=True)
        if status == 404:
            reason = f"{host} doesn't know {response.url.path}{tail}"
            remedy = "check the address (it mostly ends in /v1) and the model's name after #"
            return EndpointError(reason, remedy, status=status, said=said)
        if status == 429 or status >= 500:
            what = "has too much to do" if status in (429, 503) else "failed"
            pause = min(MAX_PAUSE_S, _seconds(response.headers.get("retry-after", "")))
            reason = f"{host} {what} ({status}{tail})"
            remedy = "see the server's own log" if status != 429 else "use fewer agents, or another server"
            away = status in (429, 503)
            return EndpointError(reason, remedy, again=True, pause=pause, status=status, said=said, away=away)
        if 300 <= status < 400:
            return EndpointError(f"{host} points elsewhere ({status})", "give the address it points to", status=status)
        return EndpointError(f"{host} refused the request ({status}{tail})", status=status, said=said)


_REACH = "start the server, or check the address and the network"


def _parsed(data: bytes, host: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        # Servers in Python write NaN and lone surrogates, which aren't JSON.
        return json.loads(data)
    except (ValueError, RecursionError):
        start = one_line(data[:60].decode("utf-8", "replace"))
        raise EndpointError(
            f"{host} answered with something else than JSON: “{start}”",
            "check that the address is that of a model server's API",
            again=True,
        ) from None


def _words(body: bytes) -> str:
    """The message in a server's error, in one line."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    for key in ("error", "detail", "message"):
        if isinstance(found, dict) and key in found:
            found = found[key]
    if isinstance(found, dict):
        found = found.get("message", "")
    return one_line(found if isinstance(found, str) else json.dumps(found))[:300]


def _cause(error: BaseException) -> str:
    """The system's word for what happened, e.g. 'Connection refused'."""
    seen: BaseException | None = error
    for _ in range(8):
        if isinstance(seen, socket.gaierror):
            return seen.strerror or "its name isn't known"
        if isinstance(seen, OSError) and seen.errno:
            return os.strerror(seen.errno)
        if seen is None:
            break
        if isinstance(seen, BaseExceptionGroup):
            seen = seen.exceptions[0]
        else:
            seen = seen.__cause__ or seen.__context__
    return one_line(str(error))[:200] or type(error).__name__


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:  # a date: our own pause will do
        return 0.0
