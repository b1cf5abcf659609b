"""The loop that all agents share: look at the plan, do the one thing that helps most, look again.

What to do is decided by pure functions over the replica (`choose_…` in the roles' files). The loop gives what was
decided a cancel scope of its own, which ends at once when a change of the plan has made it pointless. Chance comes from
the injected generator and time from trio's clock, so a simulation replays to the byte.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import trio

from swarmtui.llm.model import Model, ModelError
from swarmtui.plan.ops import DEFAULT_SKILL, Body, Op, OpId, PeerId, TaskId
from swarmtui.plan.state import Changes, Plan, Task

from .account import Account
from .crowd import Crowd, crowd
from .settings import AgentSettings
from .status import Status

if TYPE_CHECKING:
    from swarmtui.peer.peer import Peer, Watch

log = logging.getLogger(__name__)

TaskKey: TypeAlias = tuple[OpId, TaskId]
BACKOFF_SECONDS = (2.0, 60.0)
"""First and longest rest after a failure; it doubles in between."""
SHOW_SECONDS = 10.0
"""How often the others are told how fast it writes."""
LEAVE_SECONDS = 5.0
"""How long the giving back of a claim may take."""
BURST_SECONDS = 0.05
"""Changes that come so close together are looked at once."""


@dataclass(slots=True, eq=False)
class Job:
    """One thing to do."""

    plan: Plan
    task: Task
    doing: str
    run: Callable[[], Awaitable[None]]
    useful: Callable[[], bool]
    """Whether it still helps; asked after every change."""
    hesitate_s: float = 0.0
    """Wait up to so long first, by chance."""

    @property
    def key(self) -> TaskKey:
        return (self.plan.id, self.task.id)


@dataclass(slots=True)
class Choice:
    """What an agent decided."""

    job: Job | None = None
    reason: str = ""
    """Why there's nothing to do."""
    again_s: float = math.inf
    """Look again after so many seconds, though nothing changes."""


class Agent:
    """What the roles share. A role says which tasks interest it and chooses among them.

    The peer is run by whoever owns it, around :meth:`run`.
    """

    role: ClassVar[str] = ""

    def __init__(self, peer: Peer, model: Model, rng: random.Random, settings: AgentSettings | None = None) -> None:
        self.peer = peer
        self.model = model
        self.rng = rng
        self.settings = settings or AgentSettings()
        self.status = Status()
        self.account: Account | None = None
        self._watched: set[TaskKey] = set()
        self._current: Job | None = None
        self._scope = trio.CancelScope()
        self._dropped_for = ""
        self._wake = trio.Event()
        self._ended = trio.Event()
        self._running = False
        self._leaving = False
        self._saying = False
        self._paused = False
        self._failures = 0
        self._shunned: dict[TaskKey, tuple[int, float]] = {}

    # What a role adds.

    def interests(self, plan: Plan, task: Task) -> bool:
        """Whether there may be something to do for this task, now or after some time."""
        raise TypeError(f"{type(self).__name__} doesn't say what interests it")

    def choose(self, tasks: list[tuple[Plan, Task]], now: float) -> Choice:
        """Decide on the next job.

        Args:
            tasks: those that interest, of plans that aren't paused, without those that failed here a moment ago.
            now: own monotonic clock, seconds.
        """
        raise TypeError(f"{type(self).__name__} can't choose")

    async def dropped(self, job: Job, why: str) -> None:
        """A job was ended before its time: `why` is pointless, paused or leaving. May publish; time is bounded."""

    async def failed(self, job: Job, why: str, away: bool) -> None:
        """A job ended with an error; `away`: for want of its model. May publish; time is bounded."""

    # What the owner calls.

    @property
    def peer_id(self) -> PeerId:
        return self.peer.peer_id

    @property
    def skills(self) -> tuple[str, ...]:
        return self.settings.skills or (DEFAULT_SKILL,)

    @property
    def paused(self) -> bool:
        """While true the agent does nothing; setting it drops what it's at and gives its claim back."""
        return self._paused

    @paused.setter
    def paused(self, on: bool) -> None:
        self._paused = on
        if on:
            self._drop("paused")
        self._wake.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until :meth:`leave` or cancellation. Cancelled, it ends without a word, as a crash would.

        An error in a job costs that job: it's logged and shown in `status.trouble`.
        """
        self._running = True
        try:
            with self.peer.watch() as watch:
                self._rescan(self.peer.replica.plans)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._listen, watch)
                    task_status.started()
                    await self._loop()
                    nursery.cancel_scope.cancel()
        finally:
            self._running = False
            self._ended.set()

    async def leave(self) -> None:
        """Drop what it's at, give a claim back, end. Returns when `run` has ended, or after `LEAVE_SECONDS` + 1."""
        self._leaving = True
        self._drop("leaving")
        self._wake.set()
        if self._running:
            with trio.move_on_after(LEAVE_SECONDS + 1):
                await self._ended.wait()

    async def ended(self) -> None:
        """Wait until `run` has ended."""
        await self._ended.wait()

    # The loop.

    async def _loop(self) -> None:
        while not self._leaving:
            self._wake = trio.Event()
            choice = self._choose()
            if choice.job is None:
                await self._rest(choice)
            else:
                await self._do(choice.job)

    def _choose(self) -> Choice:
        if self._paused:
            self.show("paused")
            return Choice(reason="")
        now = trio.current_time()
        try:
            choice = self.choose(self._candidates(now), now)
        except Exception as error:
            log.exception("%s (%s) couldn't choose", self.settings.name, self.role)
            self.status.trouble = f"{type(error).__name__}: {error}"
            return Choice(reason="something went wrong, see the log", again_s=BACKOFF_SECONDS[1])
        if choice.job is None:
            if not self._to_try_again(now):
                self.status.trouble = ""
            self.show("waiting" if choice.again_s < math.inf else "idle", choice.reason)
        return choice

    def _candidates(self, now: float) -> list[tuple[Plan, Task]]:
        found: list[tuple[Plan, Task]] = []
        for key in sorted(self._watched):
            plan = self.peer.replica.plans.get(key[0])
            task = plan.tasks.get(key[1]) if plan else None
            if plan is None or task is None or plan.paused:
                continue
            if self._shunned.get(key, (0, 0.0))[1] <= now:
                found.append((plan, task))
        return found

    def _to_try_again(self, now: float) -> list[float]:
        """In how many seconds it may look again at each task that it leaves alone."""
        return [until - now for key, (_, until) in self._shunned.items() if key in self._watched and until > now]

    async def _rest(self, choice: Choice) -> None:
        now = trio.current_time()
        seconds = min([choice.again_s, *self._to_try_again(now)])
        if self._paused:
            seconds = math.inf
        if seconds < math.inf:
            seconds = max(seconds, 0.1) * self.rng.uniform(1.0, 1.2)
        with trio.move_on_after(seconds):
            await self._wake.wait()
            await trio.sleep(BURST_SECONDS)

    async def _do(self, job: Job) -> None:
        self._current, self._dropped_for = job, ""
        trouble, away = "", False
        with trio.CancelScope() as self._scope:
            try:
                if job.hesitate_s:
                    await trio.sleep(self.rng.uniform(0, job.hesitate_s))
                await self.peer.settled(job.plan.id)
                if job.useful():  # a restarted agent may just have heard that it had done it before
                    self.show(job.doing, job.task.title)
                    await job.run()
            except ModelError as error:
                trouble, away = str(error) or type(error).__name__, error.away
                self.status.trouble = error.in_words
                log.warning("%s (%s) failed at %s: %s", self.settings.name, self.role, job.doing, trouble)
            except Exception as error:
                log.exception("%s (%s) failed at %s", self.settings.name, self.role, job.doing)
                self.status.trouble = trouble = f"{type(error).__name__}: {error}"
        self._current = None
        if self.account is not None:
            self.account.dropped()  # what wasn't said by now never will be
        self.status.blank()
        why = self._dropped_for if self._scope.cancelled_caught else ""
        with trio.move_on_after(LEAVE_SECONDS):
            await self._after(job, trouble, away, why)

    async def _after(self, job: Job, trouble: str, away: bool, why: str) -> None:
        try:
            if trouble:
                self._count_failure(job.key)
                await self.failed(job, trouble, away)
            elif why:
                await self.dropped(job, why)
            else:
                self._failures, self.status.trouble = 0, ""
                if self._shunned.get(job.key, (0, 0.0))[1] <= trio.current_time():
                    self._shunned.pop(job.key, None)
        except Exception as error:
            log.exception("%s (%s) couldn't tidy up", self.settings.name, self.role)
            self.status.trouble = f"{type(error).__name__}: {error}"

    def _count_failure(self, key: TaskKey) -> None:
        """Leave this task alone for a while, the longer the more often it failed."""
        self._failures += 1
        times = self._shunned.get(key, (0, 0.0))[0] + 1
        first, longest = BACKOFF_SECONDS
        rest = min(longest, first * 2 ** min(10, max(times, self._failures) - 1)) * self.rng.uniform(0.7, 1.3)
        self._shunned[key] = (times, trio.current_time() + rest)

    def shun(self, key: TaskKey, seconds: float) -> None:
        """Leave a task to others for so long."""
        times, until = self._shunned.get(key, (0, 0.0))
        self._shunned[key] = (times, max(until, trio.current_time() + seconds))

    # Changes of the plan.

    async def _listen(self, watch: Watch) -> None:
        while True:
            changes = await watch.wait()
            try:
                self._note(changes)
                if self._current is not None and not self._saying and not self._current.useful():
                    self._drop("pointless")
            except Exception as error:
                log.exception("%s (%s) couldn't follow a change", self.settings.name, self.role)
                self.status.trouble = f"{type(error).__name__}: {error}"
            self._wake.set()

    def _note(self, changes: Changes) -> None:
        plans = self.peer.replica.plans
        self._rescan(changes.plans)
        for key in changes.tasks:
            plan = plans.get(key[0])
            task = plan.tasks.get(key[1]) if plan else None
            if plan is not None and task is not None and self.interests(plan, task):
                self._watched.add(key)
            else:
                self._watched.discard(key)
                self._shunned.pop(key, None)

    def _rescan(self, plans: Iterable[OpId]) -> None:
        for plan_id in plans:
            plan = self.peer.replica.plans.get(plan_id)
            self._watched = {key for key in self._watched if key[0] != plan_id}
            if plan is not None:
                self._watched |= {(plan_id, task.id) for task in plan.tasks.values() if self.interests(plan, task)}

    def _drop(self, why: str) -> None:
        if self._current is not None:
            self._dropped_for = why
            self._scope.cancel()

    # What jobs use.

    def crowd(self, now: float) -> Crowd:
        """Who can be heard now."""
        heard = sorted(self.peer.presences.items(), key=lambda item: item[0])
        return crowd(heard, now, (self.peer_id, self.role))

    def unix_seconds(self) -> float:
        """The peer's wall clock."""
        return -self.peer.clock.ahead_ms(0) / 1000

    def show(self, doing: str, subject: str = "") -> None:
        """Tell the screen and, by presence, the others."""
        if (doing, subject) != (self.status.doing, self.status.subject):
            self.status.doing, self.status.subject = doing, subject
            self.status.since = self.unix_seconds()
            self.peer.show(doing, subject)

    async def say(self, plan: Plan, *bodies: Body) -> list[Op]:
        """Publish. What it says makes many a job pointless: that doesn't end the saying.

        What is heard while it may not speak yet does: a restarted agent's words may be needless by then.
        """
        before = self.peer.replica.fingerprint
        await self.peer.settled(plan.id)
        if self.peer.replica.fingerprint != before and self._current is not None and not self._current.useful():
            self._drop("pointless")
            await trio.lowlevel.checkpoint()
        self._saying = True
        try:
            ops = await self.peer.say(plan.id, *bodies)
        finally:
            self._saying = False
        if self.account is not None:
            self.account.said(ops)
        return ops

    def writer(self) -> Callable[[str], None]:
        """What to hand to the model for its text as it comes: keeps `status.tail` and the rate."""
        self.status.blank()
        shown_at = math.inf

        def write(text: str) -> None:
            nonlocal shown_at
            now = trio.current_time()
            self.status.wrote(text, now)
            shown_at = min(shown_at, now)
            if now - shown_at >= SHOW_SECONDS:
                shown_at = now
                self.peer.show(self.status.doing, self.status.subject, self.status.tokens_per_second(now))

        return write

    def seed(self) -> int:
        """A seed for a request."""
        return self.rng.randrange(1, 1 << 31)
