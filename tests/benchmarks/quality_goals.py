"""What the quality bench measures on and with: goals with hand-made reference lists, and a model that's counted."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import trio

from swarmtui.agents.wording import words
from swarmtui.config import load
from swarmtui.llm import grammar
from swarmtui.llm.model import Likelihood, Model, Reply, Request
from swarmtui.swarm.metering import Meter
from swarmtui.swarm.models import Models

FILE = Path(__file__).parent / "goals.toml"


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A goal; with `topics`, or in another `language`."""

    title: str
    seen: bool = False
    """Prompts were tuned on it."""
    topics: tuple[tuple[str, ...], ...] = ()
    """What a sound plan touches: for each topic the beginnings of words that tell of it."""
    language: str = ""


def goals(languages: bool = False) -> list[Goal]:
    """The goals with reference lists, or those in other languages."""
    found = msgspec.convert(tomllib.loads(FILE.read_text("utf-8"))["goal"], list[Goal])
    return [goal for goal in found if bool(goal.language) == languages]


def topics(goal: Goal, text: str) -> float:
    """The share of a goal's topics that a text touches."""
    folded = text.casefold()
    touched = sum(any(re.search(rf"\b{re.escape(word)}", folded) for word in topic) for topic in goal.topics)
    return touched / len(goal.topics)


def content_words(text: str) -> frozenset[str]:
    """The different words of a text that aren't little ones."""
    return frozenset(word for word in words(text) if len(word) > 3)


class Counted:
    """A model, with account of what went through it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.calls = self.tokens_in = self.cached = self.out = self.drafts = self.valid = 0
        self.first: Any = None
        """The value of the first draft since this was set to None."""

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def tokens_per_second(self) -> float:
        return self._model.tokens_per_second

    @property
    def context(self) -> int:
        return getattr(self._model, "context", 0)

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        reply = await self._model.generate(request, on_text)
        self.calls += 1
        self.tokens_in += reply.tokens_in
        self.cached += reply.tokens_cached
        self.out += reply.tokens_out
        if request.purpose == "draft" and request.schema is not None:
            self.drafts += 1
            self.valid += not grammar.fault(request.schema, reply.value)
            self.first = self.first or reply.value
        return reply

    async def likelihood(self, request: Likelihood) -> list[float]:
        self.calls += 1
        return await self._model.likelihood(request)


@asynccontextmanager
async def started(spec: str) -> AsyncIterator[Model]:
    """The model that `--model` means, running; `SWARMTUI_LLM_THREADS` and the like count.

    Raises:
        SwarmError: it can't be used.
    """
    async with trio.open_nursery() as nursery:
        yield await Models(load({}, os.environ), Meter(), nursery).take(spec)
        nursery.cancel_scope.cancel()
