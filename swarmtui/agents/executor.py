"""The executor: claims ready tasks, does them, merges branches, takes over from the silent (docs/protocol.md, 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import trio

from swarmtui.llm.model import ModelError
from swarmtui.plan.ops import MAX_TEXT, Claim, Op, OpId, PeerId, Release, Result, TaskId
from swarmtui.plan.state import Plan, State, Task

from .agent import Agent, Choice, Job
from .context import awaited
from .crowd import Crowd
from .ranking import among_first, rank
from .wording import cut
from .work import Worker

BUSY = ("working", "merging", "claiming")
LOOK_AGAIN_S = (1.0, 15.0)
HESITATE_S = 0.5
"""It waits up to this long before it claims, and looks again, unless it comes first: so two seldom collide."""
RETRIES = 2
"""Further tries when the model fails at work."""
HOLD_LEASES = 10
"""A holder that claims to work but shows no result for so many leases is taken over once, whatever it says."""
PASSED_ON = 3
"""A task that others passed on so often, and for so long, without a result is done all the same (see `Holders`)."""


@dataclass(frozen=True, slots=True)
class Work:
    """A task to do, and how to come by it."""

    plan: Plan
    task: Task
    how: Literal["resume", "claim", "take over"]
    prior: OpId = b""
    """The claim that mine has to follow."""


@dataclass(slots=True)
class Watched:
    """What I know of another's claim, by my own monotonic clock."""

    claim: OpId
    since: float
    """When I first saw it hold the task."""
    heard: float
    """When I last had a sign that its author works on it."""


@dataclass(slots=True)
class Passed:
    """What I know of a task that is claimed by others, whoever holds it just now."""

    task: Task
    since: float
    """When I first saw it claimed by another."""
    claims: int = 0
    """Different claims of others that held it since then."""
    last: OpId = b""


@dataclass(slots=True)
class Holders:
    """Every claim that others hold now, and those that held one for far too long without a result.

    Members who take turns could hold a task for ever: each claim is followed by another's when its lease is over, and
    none is ever old. So a task that was passed on for too long is *contested*: I claim it and work on my own claim,
    wherever that stands, as a result counts whether or not its claim is in the chain.
    """

    seen: dict[tuple[OpId, TaskId], Watched] = field(default_factory=dict)
    distrusted: set[PeerId] = field(default_factory=set)
    passed: dict[tuple[OpId, TaskId], Passed] = field(default_factory=dict)
    _contested: set[tuple[OpId, TaskId]] = field(default_factory=set)

    def look(self, tasks: Iterable[tuple[Plan, Task]], me: PeerId, crowd: Crowd, now: float, patience: int) -> None:
        """Bring it up to date.

        Args:
            tasks: all that are claimed now.
            me: own peer id.
            crowd: who is heard.
            now: own monotonic clock, seconds.
            patience: leases that a busy holder gets.
        """
        held = {
            (plan.id, task.id): (plan, task)
            for plan, task in tasks
            if task.holder is not None and task.holder.author != me
        }
        for key in [key for key in self.seen if key not in held]:
            del self.seen[key]
        for key, (plan, task) in held.items():
            holder = task.holder
            assert holder is not None
            item = self.seen.get(key)
            if item is None or item.claim != holder.id:
                item = self.seen[key] = Watched(holder.id, now, now)
            busy = crowd.busy.get(holder.author)
            if busy is not None and busy.doing in BUSY and busy.subject == task.title:
                item.heard = max(item.heard, busy.at)
            if now - item.since >= patience * plan.policy.lease_s:
                self.distrusted.add(holder.author)
            passed = self.passed.setdefault(key, Passed(task, now))
            passed.claims, passed.last = passed.claims + (passed.last != holder.id), holder.id
            if passed.claims >= PASSED_ON and now - passed.since >= patience * plan.policy.lease_s:
                self._contested.add(key)
        # Not those in `held` alone: a task that I leave to others for a moment, or held between two of them, stays.
        for key in [key for key, passed in self.passed.items() if passed.task.state is not State.CLAIMED]:
            del self.passed[key]
            self._contested.discard(key)

    def contested(self, plan: Plan, task: Task) -> bool:
        """Whether others have passed it on for too long."""
        return (plan.id, task.id) in self._contested

    def free_at(self, plan: Plan, task: Task) -> float:
        """When, by my own clock, the holder will have been silent for the lease; at once if the task is contested."""
        if self.contested(plan, task):
            return -math.inf
        item = self.seen.get((plan.id, task.id))
        if item is None or task.holder is None:
            return math.inf
        quiet_since = item.since if task.holder.author in self.distrusted else item.heard
        return quiet_since + plan.policy.lease_s


def fits(task: Task, skills: Iterable[str]) -> bool:
    """Whether an executor with these skills can do it. Anybody can merge."""
    return not task.leaf or task.step.needs in skills


def choose_work(
    tasks: Iterable[tuple[Plan, Task]],
    me: PeerId,
    skills: tuple[str, ...],
    free: Callable[[Plan, Task], bool],
) -> Work | None:
    """What to do next: what I hold already; then what others wait for; merges; then in my own order.

    Args:
        tasks: ready or claimed ones.
        me: own peer id.
        skills: what I can do.
        free: whether the holder of a claimed task may be taken over now.
    """
    found: list[tuple[tuple[Any, ...], Work]] = []
    for plan, task in tasks:
        work = _work(plan, task, me, skills, free)
        if work is not None:
            group = ("resume", "claim", "take over").index(work.how)
            order = (group, plan.op.order, not awaited(plan, task), task.leaf, rank(me, task.id))
            found.append((order, work))
    return min(found, key=lambda item: item[0], default=(None, None))[1]


def _work(
    plan: Plan, task: Task, me: PeerId, skills: tuple[str, ...], free: Callable[[Plan, Task], bool]
) -> Work | None:
    if task.state is State.CLAIMED and task.holder is not None:
        if task.holder.author == me:
            return Work(plan, task, "resume")
        if fits(task, skills) and free(plan, task):
            return Work(plan, task, "take over", task.holder.id)
    elif task.state is State.READY and fits(task, skills):
        return Work(plan, task, "claim", task.chain[-1].id if task.chain else b"")
    return None


class Executor(Agent):
    """Does one task at a time."""

    role = "executor"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.holders = Holders()
        self._worker = Worker(self.model, self.settings)
        self._claim: Op | None = None
        """The claim that the job at hand rests on."""
        self._settled_at = 0.0
        """When rival claims will have arrived, by my own clock. Work begins before, nothing is said of it."""

    def interests(self, plan: Plan, task: Task) -> bool:
        return task.live and task.state in (State.READY, State.CLAIMED)

    def choose(self, tasks: list[tuple[Plan, Task]], now: float) -> Choice:
        self.holders.look(tasks, self.peer_id, self.crowd(now), now, HOLD_LEASES)
        work = choose_work(tasks, self.peer_id, self.skills, lambda plan, task: self._free(plan, task, now))
        if work is not None:
            return Choice(self._job(work))
        held = [self._free_at(plan, task, now) for plan, task in tasks if task.state is State.CLAIMED]
        if held:
            least, most = LOOK_AGAIN_S
            return Choice(reason="others work", again_s=min(most, max(least, min(held) - now)))
        return Choice(reason="no ready task fits" if tasks else "no ready task")

    def _free_at(self, plan: Plan, task: Task, now: float) -> float:
        """When a claim may be followed by mine: its author is silent by mine, the lease is over by the shared clock."""
        if task.holder is None:
            return math.inf
        if self.holders.contested(plan, task):
            return now
        left_ms = float(self.peer.clock.ahead_ms(task.holder.hlc)) + 1000 * plan.policy.lease_s
        return max(self.holders.free_at(plan, task), now + max(0, left_ms) / 1000)

    def _free(self, plan: Plan, task: Task, now: float) -> bool:
        return self._free_at(plan, task, now) <= now

    def _job(self, work: Work) -> Job:
        plan, task = work.plan, work.task
        self._claim = task.holder if work.how == "resume" else None
        self._settled_at = 0.0
        doing = ("working" if task.leaf else "merging") if work.how == "resume" else "claiming"
        idle = self.crowd(trio.current_time()).free(self.role, BUSY)
        at_once = work.how == "resume" or among_first(idle, self.peer_id, task.id, 1)
        hesitate = 0.0 if at_once else HESITATE_S

        async def run() -> None:
            if work.how != "resume" and not await self._take(work):
                return
            if self._claim is not None and self._holds(plan, task):
                await self._do_work(plan, task, self._claim)

        return Job(plan, task, doing, run, lambda: self._useful(work), hesitate)

    def _useful(self, work: Work) -> bool:
        plan, task = work.plan, work.task
        if not task.live or task.result is not None:
            return False
        if self._claim is None:
            return not plan.paused and task.state in (State.READY, State.CLAIMED)
        # Work that has begun goes on while the plan is paused: it would be lost.
        return self._holds(plan, task)

    def _holds(self, plan: Plan, task: Task) -> bool:
        """Whether my claim is the last of the chain, or was followed only by one whose author isn't to be trusted; or
        stands anywhere, if the task is contested."""
        if self._claim is None or task.holder is None:
            return False
        if self.holders.contested(plan, task):
            return True
        if task.holder.id == self._claim.id:
            return True
        follows = any(op.id == self._claim.id for op in task.chain)
        return follows and task.holder.author in self.holders.distrusted

    async def _take(self, work: Work) -> bool:
        """Claim, and say whether it's mine as far as can be known at once."""
        plan, task = work.plan, work.task
        now = trio.current_time()
        again = _work(plan, task, self.peer_id, self.skills, lambda p, t: self._free(p, t, now))
        if again is None or again.how == "resume" or plan.paused:
            return False
        (self._claim,) = await self.say(plan, Claim(task=task.id, prior=again.prior))
        self._settled_at = trio.current_time() + plan.policy.settle_ms / 1000
        if self._holds(plan, task):
            return True
        self.shun((plan.id, task.id), self.rng.uniform(1.0, 3.0))  # else it would claim again at once, without end
        return False

    async def _do_work(self, plan: Plan, task: Task, claim: Op) -> None:
        self.show("working" if task.leaf else "merging", task.title)
        output = ""
        for tries in range(1 + RETRIES):
            try:
                output = await self._worker(plan, task, self.writer(), self.seed(), tries)
                break
            except ModelError:
                if tries == RETRIES:
                    raise
                await trio.sleep(self.rng.uniform(0.5, 1.5) * 2**tries)
        await trio.sleep_until(self._settled_at)
        if self._holds(plan, task):
            await self.say(plan, Result(claim=claim.id, output=output))
        else:
            self.shun((plan.id, task.id), self.rng.uniform(1.0, 3.0))

    async def dropped(self, job: Job, why: str) -> None:
        if why in ("paused", "leaving"):
            await self._give_back(job, f"its executor is {why}", failed=False)
        self._claim = None

    async def failed(self, job: Job, why: str, away: bool) -> None:
        # Others go first; if there are none, this one tries again after a while.
        self.shun(job.key, job.plan.policy.lease_s / 4 * self.rng.uniform(0.8, 1.2))
        await self._give_back(job, why, failed=not away)

    async def _give_back(self, job: Job, why: str, failed: bool) -> None:
        self._claim = None
        holder = job.task.holder
        if holder is not None and holder.author == self.peer_id and job.task.result is None:
            await self.say(job.plan, Release(claim=holder.id, reason=cut(why, MAX_TEXT), failed=failed))
