"""What an agent needs of a model: text in, text out. The engine's client and the scripted model provide it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec

Purpose = Literal["draft", "judge", "work", "merge"]


class Urgency(enum.IntEnum):
    """How much of the plan waits for a request; what unblocks most goes first."""

    RIVAL = 0
    """A further draft of a task that has one."""
    WORK = 1
    """A result."""
    AWAITED = 2
    """A result that others wait for, or a merge."""
    DRAFT = 3
    """The first draft of a task: without it nothing below the task moves."""
    VOTE = 4
    """A further verdict on a draft."""
    FIRST_VOTE = 5
    """A verdict on a draft that has none."""


class ModelError(Exception):
    """A request failed: this request alone is lost, the next may succeed.

    `str()` says what happened; `remedy` says what a person can do about it ('' if nothing); `away` says that the model
    couldn't be asked at all, so that the failure tells nothing about what was asked.
    """

    def __init__(self, reason: str, remedy: str = "", *, away: bool = False) -> None:
        super().__init__(reason)
        self.remedy = remedy
        self.away = away

    @property
    def in_words(self) -> str:
        """What happened and what can be done, in one line."""
        return f"{self}: {self.remedy}" if self.remedy else str(self)

    def copy(self) -> ModelError:
        """The same for each who is told: an exception that's raised twice mixes up their tracebacks."""
        return ModelError(str(self), self.remedy, away=self.away)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One generation."""

    agent: str
    """Who asks; requests of different agents get fair turns."""
    purpose: Purpose
    subject: str
    """The title of the task that it's about."""
    system: str
    """The role's standing instructions: the same for every request of a role, so its evaluation can be reused."""
    prompt: str
    schema: dict[str, Any] | None = None
    """JSON schema that the text will match; None: free text."""
    max_tokens: int = 512
    temperature: float = 0.7
    seed: int = 0
    priority: int = Urgency.WORK
    """Higher goes first; see `Urgency`."""
    facts: dict[str, Any] = {}
    """What the prompt says, as data (for the scripted model): e.g. steps, fan_out, results."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back."""

    text: str
    value: Any = None
    """The text parsed, when a schema was given (always valid against it)."""
    tokens_in: int = 0
    tokens_cached: int = 0
    """Of tokens_in, those that needed no evaluation."""
    tokens_out: int = 0
    cut: bool = False
    """max_tokens ended it."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a request took of the model, whether it was answered or given up."""

    agent: str
    kind: str
    """A purpose, or 'likelihood'."""
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cancelled: bool = False

    @property
    def tokens(self) -> int:
        """Tokens that went through the model."""
        return self.tokens_in - self.tokens_cached + self.tokens_out


class Likelihood(msgspec.Struct, frozen=True, kw_only=True):
    """Texts to be weighed: mean log probability per token of each continuation after the common prefix."""

    agent: str
    prefix: str
    continuations: Sequence[str]
    priority: int = Urgency.VOTE


class Model(Protocol):
    """A model that several agents share. Cancelling a call frees its place at the next token."""

    @property
    def name(self) -> str:
        """Short name for the screen, e.g. 'SmolLM2-135M-Instruct Q4_1' or 'scripted'."""
        ...

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        """Generate; `on_text` gets each new piece of text as it comes.

        Raises:
            ModelError: the request failed (the child died, the context is too small, …).
        """
        ...

    async def likelihood(self, request: Likelihood) -> list[float]:
        """Mean log p per token for each continuation.

        Raises:
            ModelError: the request failed, or this model can't.
        """
        ...
