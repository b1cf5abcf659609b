"""Counts what the agents ask of a model and what came of it, for the summary of a run."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from swarmtui.llm.model import Cost, Likelihood, Model, ModelError, Reply, Request
from swarmtui.plan.ops import Op, OpId, Proposal, Result, Vote
from swarmtui.plan.state import Draft, Plan, Task


class Meter:
    """What was asked of all models of this swarm, and which ops it went into.

    Tokens count as they go through the model: those of prompts that had to be evaluated, and those written.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.calls: Counter[str] = Counter()
        """By purpose: draft, judge, work, merge, likelihood."""
        self.failed = 0
        self.cancelled = 0
        self.tokens_in = 0
        self.tokens_cached = 0
        self.tokens_out = 0
        self._now = now
        self._asked = 0
        self._busy = 0.0
        self._since = now()
        self._began: tuple[float, float] | None = None
        self._open: Counter[tuple[str, bool]] = Counter()
        """Tokens that went into nothing yet, by agent, and whether they were for likelihoods."""
        self._by_op: dict[OpId, tuple[Op, float, float]] = {}
        """Tokens by op: those for likelihoods, the others."""
        self._lost = 0.0

    def charge(self, cost: Cost) -> None:
        """A request took this."""
        self.tokens_in += cost.tokens_in
        self.tokens_cached += cost.tokens_cached
        self.tokens_out += cost.tokens_out
        if cost.cancelled:
            self._lost += cost.tokens
        else:
            self._open[cost.agent, cost.kind == LIKELIHOOD] += cost.tokens

    def said(self, agent: str, ops: Sequence[Op]) -> None:
        """What an agent spent since its last word went into these ops."""
        weighing, other = self._open.pop((agent, True), 0), self._open.pop((agent, False), 0)
        for op in ops:
            self._by_op[op.id] = (op, weighing / len(ops), other / len(ops))

    def dropped(self, agent: str) -> None:
        """What an agent spent since its last word went into nothing."""
        self._lost += self._open.pop((agent, True), 0) + self._open.pop((agent, False), 0)

    def goal(self) -> None:
        """A goal is given: from now on the busy share counts."""
        self._tick()
        self._began = (self._now(), self._busy)

    def asks(self, change: int) -> None:
        """So many requests more (or fewer) are on their way."""
        self._tick()
        self._asked += change

    @property
    def busy_share(self) -> float:
        """Of the time since the goal, that in which a model had something to do."""
        # Asked from the screen's thread as well: looks, and changes nothing.
        now = self._now()
        total = self._busy + (now - self._since if self._asked else 0.0)
        began, busy = self._began or (now, total)
        return (total - busy) / max(1e-9, now - began)

    def summary(self, plans: Iterable[Plan]) -> dict[str, Any]:
        """The figures, as plain data.

        Args:
            plans: as they stand at the end.
        """
        fates = self._fates({plan.id: plan for plan in plans})
        total = sum(fates.values())
        return {
            "calls": dict(sorted(self.calls.items())),
            "failed": self.failed,
            "cancelled": self.cancelled,
            "tokens_in": self.tokens_in,
            "tokens_cached": self.tokens_cached,
            "tokens_out": self.tokens_out,
            "busy_share": round(self.busy_share, 3),
            "tokens_by_fate": {fate: round(fates[fate]) for fate in FATES},
            "unused_share": round(fates["unused"] / max(1.0, total), 3),
            "rivals_share": round(fates["rivals"] / max(1.0, total), 3),
        }

    def _fates(self, plans: Mapping[OpId, Plan]) -> dict[str, float]:
        found: dict[str, float] = defaultdict(
            float, {"unused": self._lost, "used": float(sum(list(self._open.values())))}
        )
        for op, weighing, other in list(self._by_op.values()):
            plan = plans.get(op.plan)
            found[fate(plan, op) if plan else "unused"] += other
            found[fate(plan, op, shared=True) if plan else "unused"] += weighing
        return found

    def _tick(self) -> None:
        now = self._now()
        if self._asked:
            self._busy += now - self._since
        self._since = now


LIKELIHOOD = "likelihood"
FATES = ("used", "rivals", "unused")
"""What tokens went into: something that the plan is made of (or still may be); a draft that was weighed against the
winner and lost; nothing that the plan used."""


def fate(plan: Plan, op: Op, shared: bool = False) -> str:
    """What became of an op: see `FATES`.

    Args:
        plan: the op's.
        op: of any kind.
        shared: ask for what others took part in. Likelihoods are weighed once for all scorers of a draft, so they were
            of use if any of its votes was.
    """
    body = op.body
    if isinstance(body, Proposal):
        task = plan.tasks.get(body.task)
        return _draft_fate(task, task.drafts.get(op.id)) if task else "unused"
    if isinstance(body, Vote):
        return _vote_fate(plan, op, body, shared)
    if isinstance(body, Result):
        results = [task.result.id for task in list(plan.tasks.values()) if task.result is not None]
        return "used" if op.id in results else "unused"
    return "used"


def _draft_fate(task: Task, draft: Draft | None) -> str:
    if draft is None or not draft.counts:
        return "unused"
    if task.winner is None or task.winner is draft:
        return "used"
    winner = task.winner.op.body
    if isinstance(winner, Proposal) and winner.base == draft.op.id:
        return "used"
    return "rivals" if draft.votes else "unused"


def _vote_fate(plan: Plan, op: Op, vote: Vote, shared: bool) -> str:
    for task in list(plan.tasks.values()):
        draft = task.drafts.get(vote.proposal)
        if draft is not None:
            winner = task.winner
            first = min([op.hlc, *(each.hlc for each in list(draft.votes.values()))]) if shared else op.hlc
            in_time = winner is None or winner.accepted_at is None or first <= winner.accepted_at
            return "used" if draft.counts and in_time else "unused"
    return "unused"


class Account:
    """An agent's part of the meter; satisfies `agents.account.Account`."""

    def __init__(self, meter: Meter, name: str) -> None:
        self._meter = meter
        self._name = name

    def said(self, ops: Sequence[Op]) -> None:
        self._meter.said(self._name, ops)

    def dropped(self) -> None:
        self._meter.dropped(self._name)


class Metered:
    """A model whose use is counted."""

    def __init__(self, model: Model, meter: Meter, *, tells_costs: bool = False) -> None:
        """
        Args:
            model: any.
            meter: counts.
            tells_costs: the model itself tells the meter what requests took; else their answers do.
        """
        self._model = model
        self._meter = meter
        self._tells_costs = tells_costs

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def context(self) -> int:
        """Tokens per request; 0 where the model doesn't tell."""
        return int(getattr(self._model, "context", 0))

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        """See :meth:`Model.generate`."""
        meter = self._meter
        meter.calls[request.purpose] += 1
        meter.asks(1)
        finished = False
        try:
            reply = await self._model.generate(request, on_text)
            finished = True
        except ModelError:
            finished = True
            meter.failed += 1
            raise
        finally:
            meter.asks(-1)
            meter.cancelled += not finished
        if not self._tells_costs:
            cost = Cost(
                agent=request.agent,
                kind=request.purpose,
                tokens_in=reply.tokens_in,
                tokens_cached=reply.tokens_cached,
                tokens_out=reply.tokens_out,
            )
            meter.charge(cost)
        return reply

    async def likelihood(self, request: Likelihood) -> list[float]:
        """See :meth:`Model.likelihood`."""
        meter = self._meter
        meter.calls[LIKELIHOOD] += 1
        meter.asks(1)
        try:
            # A model that can't isn't a failure: it's asked for words.
            return await self._model.likelihood(request)
        finally:
            meter.asks(-1)
