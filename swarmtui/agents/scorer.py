"""The scorer: judges drafts, and settles for the best when nobody moves any more (docs/protocol.md, 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import trio

from swarmtui.plan.ops import MAX_TEXT, Marks, PeerId, Policy, Vote
from swarmtui.plan.state import Draft, Plan, Task

from . import judging
from .agent import Agent, Choice, Job, TaskKey
from .crowd import Crowd, may_vote, scorers
from .judge import Judge
from .ranking import best_first, judged, mean_mark, rank, refinements, standing, undecided, verdicts
from .wording import cut

WIDEN_S = (5.0, 60.0)
"""Least and most time to wait after settling for one draft before settling for the next as well."""
RIVAL_PART = 8
"""Of a plan's patience, so much is given to a rival that somebody says is being written, from the first draft on."""
LOOK_AGAIN_S = 1.0
"""While waiting for one: another's drafting is known by presence alone, so its end wakes nobody."""


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Drafts of one task that want my verdict."""

    plan: Plan
    task: Task
    drafts: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Settle:
    """A draft to be approved though it didn't reach the pass mark, or wasn't judged."""

    plan: Plan
    task: Task
    draft: Draft


@dataclass(slots=True)
class Waited:
    """How long, by my own monotonic clock, a task has been undecided."""

    since: float
    """When I first saw it undecided with a draft."""
    spent: float | None = None
    """When I first saw that its rounds or my patience are spent."""


def unjudged(plan: Plan, task: Task, me: PeerId) -> tuple[Draft, ...]:
    """The drafts of an undecided task on which my vote is missing and may still matter."""
    if not undecided(task) or not may_vote(plan.policy, me):
        return ()
    return tuple(draft for draft in standing(task) if draft.op.author != me and me not in draft.votes)


def choose_unjudged(tasks: Iterable[tuple[Plan, Task]], me: PeerId) -> Unjudged | None:
    """What to judge next: drafts without any vote first, then those nearest to the quorum, the oldest plan, the highest
    task; then my own order."""
    found = [Unjudged(plan, task, drafts) for plan, task in tasks if (drafts := unjudged(plan, task, me))]

    def order(item: Unjudged) -> tuple[Any, ...]:
        missing = min(max(0, item.plan.policy.need - len(draft.approvals)) for draft in item.drafts)
        unseen = any(not draft.votes for draft in item.drafts)
        return (not unseen, missing, item.plan.op.order, item.task.depth, rank(me, item.task.id))

    return min(found, key=order, default=None)


def awaits_rival(plan: Plan, task: Task, me: PeerId, crowd: Crowd) -> bool:
    """Whether the policy wants another draft and somebody says that it's being written.

    A verdict on the first before would decide the task, and the other would have been written for nobody.
    """
    return len(standing(task)) < plan.policy.rivals and crowd.doing("drafting", task.title, but=me) > 0


def rounds_spent(plan: Plan, task: Task, crowd: Crowd) -> bool:
    """Whether all drafts that the policy wants are there and judged, and none won."""
    there = standing(task)
    return (
        bool(there)
        and len(there) >= plan.policy.rivals
        and refinements(there) >= plan.policy.rounds
        and judged(plan.policy, there, len(scorers(plan.policy, crowd)))
    )


def widen_after(policy: Policy) -> float:
    """Seconds between settling for one draft and for the next as well."""
    least, most = WIDEN_S
    return min(most, max(least, policy.patience_s / 4))


def choose_settled(
    tasks: Iterable[tuple[Plan, Task]], me: PeerId, waited: Mapping[TaskKey, Waited], now: float
) -> Settle | None:
    """The next draft to settle for: the best by mean mark that I may approve and haven't, among as many of the best as
    the time spent allows.

    All scorers rank alike once they hold the same ops, so they settle for the same draft. Where it can't get its quorum
    (its author is one of us, or it's vetoed), the next best joins it after a while, and so on: approvals only grow, so
    in the end some draft has enough.
    """
    for plan, task in sorted(tasks, key=lambda item: (item[0].op.order, item[1].depth, rank(me, item[1].id))):
        waiting = waited.get((plan.id, task.id))
        if waiting is None or waiting.spent is None or not may_vote(plan.policy, me):
            continue
        wide = 1 + int((now - waiting.spent) / widen_after(plan.policy))
        for draft in best_first(plan.policy, standing(task))[:wide]:
            if draft.op.author != me and me not in draft.approvals:
                return Settle(plan, task, draft)
    return None


class Scorer(Agent):
    """Judges with an emphasis of its own."""

    role = "scorer"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.waited: dict[TaskKey, Waited] = {}
        self._judge = Judge(self.model, self.settings, None)

    def interests(self, plan: Plan, task: Task) -> bool:
        return undecided(task)

    def choose(self, tasks: list[tuple[Plan, Task]], now: float) -> Choice:
        crowd = self.crowd(now)
        # Settling needs no model, so tasks whose judging failed a moment ago aren't left out.
        every = self._every()
        self._keep_time(every, crowd, now)
        settle = choose_settled(every, self.peer_id, self.waited, now)
        if settle is not None:
            return Choice(self._settling(settle))
        found = choose_unjudged([pair for pair in tasks if not self._awaits_rival(*pair, crowd, now)], self.peer_id)
        if found is not None:
            return Choice(self._judging(found))
        if choose_unjudged(tasks, self.peer_id) is not None:
            return Choice(reason="waits for a rival draft", again_s=LOOK_AGAIN_S)
        if not every:
            return Choice(reason="no draft to judge")
        barred = all(not may_vote(plan.policy, self.peer_id) for plan, _ in every)
        reason = "the policy names other scorers" if barred else "waits for drafts and votes"
        return Choice(reason=reason, again_s=self._next(now))

    def _every(self) -> list[tuple[Plan, Task]]:
        plans = self.peer.replica.plans
        pairs = [(plans[plan], plans[plan].tasks[task]) for plan, task in sorted(self._watched)]
        return [(plan, task) for plan, task in pairs if not plan.paused and undecided(task)]

    def _keep_time(self, tasks: list[tuple[Plan, Task]], crowd: Crowd, now: float) -> None:
        there = {(plan.id, task.id): (plan, task) for plan, task in tasks if standing(task)}
        for key in [key for key in self.waited if key not in there]:
            del self.waited[key]
        for key, (plan, task) in there.items():
            waiting = self.waited.setdefault(key, Waited(since=now))
            if waiting.spent is None:
                late = now - waiting.since >= plan.policy.patience_s
                if late or (rounds_spent(plan, task, crowd) and not unjudged(plan, task, self.peer_id)):
                    waiting.spent = now

    def _awaits_rival(self, plan: Plan, task: Task, crowd: Crowd, now: float) -> bool:
        waiting = self.waited.get((plan.id, task.id))
        late = waiting is None or now - waiting.since >= plan.policy.patience_s / RIVAL_PART
        return not late and awaits_rival(plan, task, self.peer_id, crowd)

    def _next(self, now: float) -> float:
        plans = self.peer.replica.plans
        moments = []
        for (plan_id, _), waiting in self.waited.items():
            policy = plans[plan_id].policy
            if waiting.spent is None:
                moments.append(waiting.since + policy.patience_s)
            else:
                step = widen_after(policy)
                moments.append(waiting.spent + (1 + int((now - waiting.spent) / step)) * step)
        return max(0.1, min(moments, default=now + 60.0) - now) + 0.01

    def _judging(self, found: Unjudged) -> Job:
        plan, task = found.plan, found.task

        async def run() -> None:
            others = scorers(plan.policy, self.crowd(trio.current_time()))
            self._judge.emphasis = judging.emphasis_of(self.peer_id, others)
            verdicts = [
                (draft, await self._judge(plan, task, draft, self.writer(), self.seed())) for draft in found.drafts
            ]
            verdicts = [(draft, verdict) for draft, verdict in verdicts if not draft.vetoed]
            # The best first: should several pass, it's accepted the earlier.
            verdicts.sort(key=lambda item: (-item[1].marks.mean, item[0].op.id))
            bodies = [
                Vote(
                    proposal=draft.op.id,
                    approve=verdict.marks.mean >= plan.policy.pass_mark,
                    marks=verdict.marks,
                    critique=cut(verdict.critique, MAX_TEXT),
                )
                for draft, verdict in verdicts
            ]
            if bodies:
                await self.say(plan, *bodies)

        def useful() -> bool:
            return not plan.paused and undecided(task) and any(not draft.vetoed for draft in found.drafts)

        return Job(plan, task, "judging", run, useful)

    def _settling(self, settle: Settle) -> Job:
        plan, task, draft = settle.plan, settle.task, settle.draft

        async def run() -> None:
            mark = mean_mark(plan.policy, draft)
            said = f"Settled for the best of {len(standing(task))} drafts" + (
                f" (mean mark {round(mark)})." if mark is not None else ", which nobody has judged."
            )
            body = Vote(proposal=draft.op.id, approve=True, marks=self._marks(plan, draft), critique=said)
            await self.say(plan, body)

        return Job(plan, task, "judging", run, lambda: undecided(task) and not draft.vetoed and not plan.paused)

    def _marks(self, plan: Plan, draft: Draft) -> Marks:
        """My own marks, or the others' mean, so that settling doesn't change the ranking."""
        own = draft.votes.get(self.peer_id)
        if own is not None and isinstance(own.body, Vote):
            return own.body.marks
        votes = verdicts(plan.policy, draft)
        if not votes:
            return Marks(specific=50, distinct=50, complete=50)
        count = len(votes)
        return Marks(
            specific=round(sum(vote.marks.specific for vote in votes) / count),
            distinct=round(sum(vote.marks.distinct for vote in votes) / count),
            complete=round(sum(vote.marks.complete for vote in votes) / count),
        )
