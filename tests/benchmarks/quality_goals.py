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
from swarmtui.llm.model import Model, Reply, Request
from swarmtui.swarm.metering import Meter, Metered
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


class Counted(Metered):
    """A model whose use is counted, and whose drafts are looked at as they come."""

    def __init__(self, model: Model) -> None:
        self.meter = Meter()
        super().__init__(model, self.meter)
        self.drafts = self.valid = 0
        self.first: Any = None
        """The value of the first draft since this was set to None."""

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        reply = await super().generate(request, on_text)
        if request.purpose == "draft" and request.schema is not None:
            self.drafts += 1
            self.valid += not grammar.fault(request.schema, reply.value)
            self.first = self.first or reply.value
        return reply


@asynccontextmanager
async def started(spec: str) -> AsyncIterator[Model]:
    """The model that `--model` means, running; `SWARMTUI_LLM_THREADS` and the like count.

    Raises:
        SwarmError: it can't be used.
    """
    async with trio.open_nursery() as nursery:
        yield await Models(load({}, os.environ), Meter(), nursery).take(spec)
        nursery.cancel_scope.cancel()
