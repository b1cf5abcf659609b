"""Counts what the agents ask of a model, for the summary of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from swarmtui.llm.model import Likelihood, Model, ModelError, Reply, Request


class Meter:
    """What was asked of all models of this swarm."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        """By purpose: draft, judge, work, merge, likelihood."""
        self.failed = 0
        self.cancelled = 0
        self.tokens_in = 0
        self.tokens_cached = 0
        self.tokens_out = 0
        self.busy_seconds = 0.0

    def summary(self) -> dict[str, float | int | dict[str, int]]:
        """The figures, as plain data."""
        return {
            "calls": dict(sorted(self.calls.items())),
            "failed": self.failed,
            "cancelled": self.cancelled,
            "tokens_in": self.tokens_in,
            "tokens_cached": self.tokens_cached,
            "tokens_out": self.tokens_out,
            "busy_seconds": round(self.busy_seconds, 1),
        }


class Metered:
    """A model whose use is counted."""

    def __init__(self, model: Model, meter: Meter) -> None:
        self._model = model
        self._meter = meter

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def tokens_per_second(self) -> float:
        return self._model.tokens_per_second

    @property
    def context(self) -> int:
        """Tokens per request; 0 where the model doesn't tell."""
        return int(getattr(self._model, "context", 0))

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        """See :meth:`Model.generate`."""
        meter = self._meter
        meter.calls[request.purpose] += 1
        finished = False
        try:
            reply = await self._model.generate(request, on_text)
            finished = True
        except ModelError:
            finished = True
            meter.failed += 1
            raise
        finally:
            meter.cancelled += not finished
        meter.tokens_in += reply.tokens_in
        meter.tokens_cached += reply.tokens_cached
        meter.tokens_out += reply.tokens_out
        meter.busy_seconds += reply.seconds
        return reply

    async def likelihood(self, request: Likelihood) -> list[float]:
        """See :meth:`Model.likelihood`."""
        self._meter.calls["likelihood"] += 1
        return await self._model.likelihood(request)  # a model that can't isn't a failure: it's asked for words
