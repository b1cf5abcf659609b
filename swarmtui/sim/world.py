"""One scenario while it runs: starts its members, does what goes wrong, heals, and waits for a good end."""

from __future__ import annotations

import math
import random

import trio

from swarmtui.agents.executor import Executor
from swarmtui.peer.memory import Faults
from swarmtui.peer.spread import CAROUSEL_BYTES, CAROUSEL_IDLE_S
from swarmtui.plan.ops import Goal, OpId, TaskId
from swarmtui.plan.state import State

from . import steering
from .ear import Notebook
from .ether import Ether
from .hostile import Hostile
from .links import partition
from .member import Member
from .scenario import Crash, Cut, Fault, Jump, Leave, Said, Scenario, Steering, Stop, Weather
from .stopping import Stopper
from .trace import Trace

LOOK_S = 1.0
CALM = Weather(at=0, until=0)


class World:
    """A swarm while it runs."""

    def __init__(self, scenario: Scenario, nursery: trio.Nursery, trace: Trace) -> None:
        self.scenario = scenario
        self.nursery = nursery
        self.trace = trace
        self.rng = random.Random(f"{scenario.seed}/world")
        self.stopper = Stopper()
        self.book = Notebook()
        self.healed = False
        self.over = False
        self.to_give = len(scenario.goals)
        """Goals that the operator hasn't given yet."""
        self.to_join = len(scenario.members)
        self.ether = Ether(random.Random(f"{scenario.seed}/ether"), trace, self.stopper, Faults())
        self.members: dict[int, Member] = {}
        self.hostile: dict[int, Hostile] = {}
        self.weather: list[Weather] = []
        self.cuts: list[Cut] = []
        self.finished_s: float | None = None
        """When the plans were done, after the healing; None: they weren't."""
        self.settled_s: float | None = None
        """When all held the same, after that."""
        self.catchups: list[float] = []
        for number, spec in enumerate(scenario.members):
            if spec.role == "hostile":
                one: Member | Hostile = self.hostile.setdefault(number, Hostile(self, number, spec))
            else:
                one = self.members.setdefault(number, Member(self, number, spec))
            self.ether.numbers[one.identity.peer_id] = number
        if scenario.degree:
            self.ether.knit(scenario.degree, self.rng)
        for fault in scenario.faults:
            if isinstance(fault, (Crash, Stop)) and isinstance(fault.when, Said):
                self.members[fault.member].arm(fault.when, fault)

    # --- its course

    async def run(self) -> None:
        """From the first start to the moment of judgement."""
        for number, spec in enumerate(self.scenario.members):
            self.nursery.start_soon(self._join, number, spec.joins_s)
        for moment in self.scenario.goals:
            self.nursery.start_soon(self._give, moment)
        for fault in self.scenario.faults:
            self.nursery.start_soon(self._do, fault)
        self.nursery.start_soon(self.ether.post.carry)
        self.nursery.start_soon(self._watch)
        await trio.sleep_until(self.scenario.heal_s)
        await self._heal()
        await self._finish()
        await self._settle()
        self.over = True

    async def _join(self, number: int, at: float) -> None:
        await trio.sleep_until(at)
        self.to_join -= 1
        if number in self.members and self.members[number].gone:
            return
        self.trace.note(number, f"starts as {self.scenario.members[number].role}")
        if number in self.hostile:
            await self.nursery.start(self.hostile[number].live)
        else:
            await self.nursery.start(self.members[number].live)

    async def _give(self, moment: float) -> None:
        """The operator gives a goal, again if it's killed before it could say so."""
        await trio.sleep_until(moment)
        member = self.members[self.scenario.of("operator")[0]]
        goal = Goal(f"Plan trip {moment:.0f}", policy=self.scenario.policy, nonce=b"%d" % round(moment * 1000))
        while goal not in member.given and not member.gone:
            if member.working:
                member.give(goal)
            await trio.sleep(LOOK_S)
        self.to_give -= 1

    # --- what goes wrong

    async def _do(self, fault: Fault) -> None:
        if isinstance(fault, (Crash, Stop)):
            if not isinstance(fault.when, Said):
                await trio.sleep_until(fault.when)
                self.strike(fault)
            return
        await trio.sleep_until(fault.at)
        if self.healed:
            return
        self.trace.fault(fault)
        match fault:
            case Weather():
                await self._storm(fault)
            case Cut():
                await self._cut(fault)
            case Leave():
                await self.members[fault.member].leave()
            case Jump():
                self.members[fault.member].skew_ms += fault.ms
            case Steering():
                steering.steer(self, fault.act)

    async def _storm(self, weather: Weather) -> None:
        self.weather.append(weather)
        self._blow()
        await trio.sleep_until(weather.until)
        if not self.healed:
            self.weather.remove(weather)
            self._blow()

    def _blow(self) -> None:
        """Several storms at once: each fault as bad as in the worst."""
        now = self.weather or [CALM]
        faults = self.ether.faults
        faults.loss = max(weather.loss for weather in now)
        faults.duplicate = max(weather.duplicate for weather in now)
        faults.reorder = max(weather.reorder for weather in now)
        faults.delay = max(weather.delay for weather in now)

    async def _cut(self, cut: Cut) -> None:
        self.cuts.append(cut)
        while trio.current_time() < cut.until and not self.healed:
            blocked = partition(cut.shape, sorted(self.ether.numbers), self.rng)
            self.ether.cut(blocked)
            again = cut.turn_s if cut.shape == "islands" else cut.until
            await trio.sleep_until(min(cut.until, trio.current_time() + again))
        if not self.healed:
            self.cuts.remove(cut)
            if not self.cuts:
                self.ether.heal()

    def strike(self, fault: Crash | Stop) -> None:
        """Kill or stop a member now."""
        if isinstance(fault, Crash):
            self.crash(fault)
        elif not self.healed:
            self.trace.fault(fault)
            self.members[fault.member].stop()
            self.nursery.start_soon(self._go_on, self.members[fault.member], fault.for_s)

    async def strike_later(self, fault: Crash | Stop, after: float) -> None:
        """Kill or stop a member after a while."""
        await trio.sleep(after)
        self.strike(fault)

    async def _go_on(self, member: Member, after: float) -> None:
        await trio.sleep(after)
        member.go_on()

    def crash(self, crash: Crash) -> None:
        """Kill a member now; it may come back."""
        member = self.members[crash.member]
        if not member.alive or self.over:
            return
        self.trace.fault(crash)
        member.kill(crash.disk)
        if crash.back_s is None:
            member.gone = True
        else:
            self.nursery.start_soon(self._return, member, crash.back_s)

    async def _return(self, member: Member, after: float) -> None:
        await trio.sleep(after if self.healed else min(after, max(0.5, self.scenario.heal_s - trio.current_time())))
        await member.restart()

    # --- what ends well

    async def _heal(self) -> None:
        self.healed = True
        self.weather.clear()
        self.cuts.clear()
        self._blow()
        self.ether.heal()
        for member in self.members.values():
            member.go_on()
            member.recover()
        if not self.scenario.hostile_stay:
            self._pacify()
        self.trace.note(-1, "healed")
        self.book.stirred = trio.current_time()
        self.book.watch_rests = True

    def _pacify(self) -> None:
        for hostile in self.hostile.values():
            hostile.stop()

    def honest(self) -> list[Member]:
        return [member for member in self.members.values() if member.alive and not member.gone]

    def plans(self) -> set[OpId]:
        """What has to be done: what honest people asked for and some live peer knows."""
        operators = {member.identity.peer_id for member in self.members.values()}
        return {
            plan.id
            for member in self.honest()
            for plan in member.peer.replica.plans.values()
            if plan.operator in operators
        }

    def lost_goals(self) -> list[str]:
        """Goals that were given, and must be on the operator's disk, but that no live peer knows."""
        known = [plan.goal for one in self.honest() for plan in one.peer.replica.plans.values()]
        careless = {fault.member for fault in self.scenario.faults if isinstance(fault, Crash) and fault.disk != "kept"}
        return [
            goal.title
            for number, one in self.members.items()
            for goal in one.given
            if number not in careless and one.alive and goal not in known
        ]

    def _all_done(self) -> bool:
        if self.to_give or self.to_join or self.lost_goals():
            return False
        expected = self.plans()
        speaking = [member for member in self.honest() if not member.silent]
        return all(
            plan in member.peer.replica.plans and member.peer.replica.plans[plan].done
            for member in speaking
            for plan in expected
        )

    def all_same(self) -> bool:
        """Whether all hold the same, and every observer that, too (see :meth:`heard_alone`)."""
        speaking = {one.peer.replica.fingerprint for one in self.honest() if not one.silent}
        if len(speaking) > 1:
            return False
        return all(
            one.peer.replica.fingerprint in speaking or self.heard_alone(one) for one in self.honest() if one.silent
        )

    def incomplete(self) -> list[int]:
        """Members that don't say of themselves that they're complete, but for those that heard something alone."""
        return [
            one.number for one in self.honest() if not one.peer.complete and not (one.silent and self.heard_alone(one))
        ]

    def heard_alone(self, observer: Member) -> int:
        """How many ops an observer holds that no speaking peer holds, if it holds all that they hold; else 0.

        What only a listener heard (its author lost it, or told nobody else on purpose) it can't pass on.
        """
        if not self.scenario.of("hostile") and not any(isinstance(fault, Crash) for fault in self.scenario.faults):
            return 0
        different = {one.peer.replica.fingerprint: one.peer.replica for one in self.honest() if not one.silent}
        theirs = {op.id for replica in different.values() for op in replica.ops()}
        mine = {op.id for op in observer.peer.replica.ops()}
        return len(mine - theirs) if mine > theirs else 0

    async def _finish(self) -> None:
        """Wait until every plan is done, with an operator who opens again what has failed."""
        began, end = trio.current_time(), trio.current_time() + self.scenario.finish_s + self.scenario.ahead_s
        while trio.current_time() < end:
            if self._all_done():
                self.finished_s = trio.current_time() - began
                break
            steering.help_along(self)
            await trio.sleep(LOOK_S)
        self.book.watch_rests = False
        self.trace.note(-1, "finished" if self.finished_s is not None else "not finished")

    async def _settle(self) -> None:
        """Wait until all hold the same and nothing moves any more."""
        self._pacify()
        began = trio.current_time()
        end = began + self.scenario.settle_s + self.scenario.ahead_s + self._carousel_s()
        same_since: float | None = None
        while trio.current_time() < end:
            now = trio.current_time()
            if not self._all_done() or not self.all_same() or self.incomplete():
                same_since = None
            elif same_since is None:
                same_since = now
            elif now - same_since >= 3 * LOOK_S:
                self.settled_s = now - began
                break
            await trio.sleep(LOOK_S)
        self.trace.note(-1, "settled" if self.settled_s is not None else "not settled")

    def _carousel_s(self) -> float:
        """How long a listener may have to wait until the one bundle that it lacks comes round: each time one is told,
        chance says which."""
        told = max(sum(len(op.payload) + 80 for op in one.peer.replica.ops()) for one in self.honest())
        bundles = 1 + told // CAROUSEL_BYTES
        return CAROUSEL_IDLE_S * bundles * (5 + math.log(bundles))

    async def _watch(self) -> None:
        """Once a second: how long do orphaned tasks lie there while somebody could take them?"""
        behind = set(self.scenario.of("observer"))
        while True:
            await trio.sleep(LOOK_S)
            if self.healed:
                self._look_at_observers(behind)
            if self.book.orphans and not self.weather and not self.cuts and self._somebody_is_idle():
                for (plan_id, task_id), orphan in self.book.orphans.items():
                    if self._lies_there(plan_id, task_id):
                        orphan.waited += LOOK_S
                        self.book.longest_wait = max(self.book.longest_wait, orphan.waited)

    def _look_at_observers(self, behind: set[int]) -> None:
        """Note how long each takes, once nothing is wrong, until it holds what some speaking peer holds."""
        prints = {one.peer.replica.fingerprint for one in self.honest() if not one.silent}
        for number in sorted(behind):
            if self.members[number].working and self.members[number].peer.replica.fingerprint in prints:
                behind.discard(number)
                self.catchups.append(
                    trio.current_time() - max(self.scenario.heal_s, self.scenario.members[number].joins_s)
                )

    def _executors(self) -> list[Member]:
        return [one for one in self.members.values() if isinstance(one.agent, Executor) and one.working]

    def _somebody_is_idle(self) -> bool:
        return any(
            one.agent is not None and one.agent.status.doing in ("idle", "waiting") and not one.skew_ms
            for one in self._executors()
        )

    def _lies_there(self, plan_id: OpId, task_id: TaskId) -> bool:
        """Whether an executor knows of the task, and that it's claimed."""
        plans = [one.peer.replica.plans.get(plan_id) for one in self._executors()]
        found = [(plan, plan.tasks.get(task_id)) for plan in plans if plan is not None]
        return any(task is not None and task.state is State.CLAIMED and not plan.paused for plan, task in found)
