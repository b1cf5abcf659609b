"""One honest member of a simulated swarm: a real peer and a real agent, killed, stopped and started again."""

from __future__ import annotations

import hashlib
import random
import traceback
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, cast

import trio

from swarmtui.agents import Agent, AgentSettings, make
from swarmtui.agents.operator import Operator
from swarmtui.peer.frames import SHARED, take_apart
from swarmtui.peer.journal import Journal
from swarmtui.peer.peer import Card, Peer
from swarmtui.plan.envelope import Identity
from swarmtui.plan.ops import AnyAct, Body, Goal, Op, OpId, Steer

from .disk import Disk, DiskJournal
from .ear import Ear
from .ether import EtherNetwork
from .model import SimulatedModel
from .scenario import Crash, Said, Stop
from .scenario import Member as Spec
from .stopping import belongs_to

if TYPE_CHECKING:
    from .world import World

EPOCH_MS = 1_800_000_000_000


@cache
def _settings() -> AgentSettings:
    """Read the prompts once."""
    return AgentSettings()


@cache
def identity_of(seed: int, number: int) -> Identity:
    """A member's key."""
    return Identity.from_seed(hashlib.sha256(f"{seed}/{number}".encode()).digest())


def kind_of(body: Body) -> str:
    """The word by which scenarios name what an op says."""
    return type(body.act if isinstance(body, Steer) else body).__name__.lower()


class SimulatedPeer(Peer):
    """A peer that can be killed just before it says something."""

    member: Member

    async def say(self, plan_id: OpId, *bodies: Body) -> list[Op]:
        self.member.about_to_say(bodies)
        if self.member.network.dead:
            await trio.sleep_forever()
        return await super().say(plan_id, *bodies)


class Member:
    """One member over all its lives."""

    def __init__(self, world: World, number: int, spec: Spec) -> None:
        self.world = world
        self.number = number
        self.spec = spec
        self.identity = identity_of(world.scenario.seed, number)
        self.disk = Disk()
        self.skew_ms = spec.skew_ms
        self.life = 0
        self.alive = False
        self.gone = False
        """It has left, or was killed, for good."""
        self.triggers: list[tuple[Said, Crash | Stop]] = []
        self.errors: list[str] = []
        self.sent = 0
        """Frames and requests of earlier lives."""
        self._said: dict[tuple[str, str], int] = {}
        self._left_ids: set[tuple[str, OpId]] = set()
        self.given: list[Goal] = []
        """Goals that it gave (they were on disk)."""
        self._deciding = False
        self._nursery: trio.Nursery | None = None
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._asked_to_end = False
        self._make()

    # --- what it is

    @property
    def silent(self) -> bool:
        return self.spec.role == "observer"

    @property
    def working(self) -> bool:
        """Running and not stopped."""
        return self.alive and not self.world.stopper.is_stopped(self.number)

    def now_ms(self) -> int:
        """Its wall clock."""
        return EPOCH_MS + int(trio.current_time() * 1000) + self.skew_ms

    def chance(self, what: str) -> random.Random:
        """A source of chance of its own for each purpose and life, so that one more draw here changes nothing there."""
        return random.Random(f"{self.world.scenario.seed}/{self.number}/{self.life}/{what}")

    def _make(self) -> None:
        """Make the peer and agent of its next life."""
        world, role = self.world, self.spec.role
        self.network: EtherNetwork = world.ether.network(self.identity.peer_id)
        self.network.to_publish, self.network.published = self.to_publish, self.published
        self.journal = DiskJournal(self.disk)
        name = f"{role[:1]}{self.number}"
        self.peer = SimulatedPeer(
            self.identity,
            self.network,
            now_ms=self.now_ms,
            rng=self.chance("peer"),
            journal=cast(Journal, self.journal),
            silent=self.silent,
            card=Card(name=name, role=role, model="scripted"),
            fresh=self.life == 0,
        )
        self.peer.member = self
        self.peer._watches.append(Ear(self.peer.replica.plans, world.book))  # type: ignore[arg-type]  # all of a Watch that's used
        scenario, healed = world.scenario, world.healed
        self.model = SimulatedModel(
            scenario.seed,
            self.chance("model"),
            scenario.tokens_per_second,
            1.0 if healed else self.spec.slow,
            0.0 if healed else self.spec.fails,
        )
        self.operator = Operator(self.peer) if role == "operator" else None
        self.agent: Agent | None = None
        if role not in ("operator", "observer", "idle"):
            settings = replace(_settings(), name=name)
            self.agent = make(role, self.peer, self.model, self.chance("agent"), settings)

    # --- its life

    async def live(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """One life. Whatever ends it but us is noted as an error."""
        belongs_to.set(self.number)
        self._scope, self._ended, self._asked_to_end = trio.CancelScope(), trio.Event(), False
        self.alive = True
        task_status.started()
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    await nursery.start(self.peer.run)
                    self._nursery = nursery
                    if self.agent is not None:
                        await nursery.start(self.agent.run)
                        await self.agent.ended()
                    else:
                        await trio.sleep_forever()
                    nursery.cancel_scope.cancel()
        except Exception as error:
            self.errors.append("".join(traceback.format_exception(error)))
        else:
            if not self._asked_to_end:
                self.errors.append(f"member {self.number} ({self.spec.role}) ended by itself")
        finally:
            self.alive, self._nursery = False, None
            self._ended.set()

    def kill(self, disk: str) -> None:
        """SIGKILL: from this moment on nothing of it reaches the network or the disk."""
        if not self.alive or self.network.dead:
            return
        self.world.trace.note(self.number, "killed", disk.encode(), detail=f"journal {disk}")
        self._mourn()
        self.network.dead = self.journal.dead = self.peer.abrupt = self._asked_to_end = True
        self.sent += self.traffic()
        self.disk.suffer(disk, self.chance("disk"))
        self.world.ether.down(self.identity.peer_id)
        self._scope.cancel()
        self.world.stopper.go_on(self.number)

    async def restart(self) -> None:
        """The same identity again, in a new process."""
        await self._ended.wait()
        if self.gone or self.alive or self.world.over:
            return
        self.life += 1
        self._make()
        self.world.ether.up(self.identity.peer_id)
        self.world.trace.note(self.number, "starts again")
        self.world.book.returned(self.identity.peer_id)
        await self.world.nursery.start(self.live)

    async def leave(self) -> None:
        """Go politely."""
        self.gone = self._asked_to_end = True
        if self.alive and self.agent is not None:
            await self.agent.leave()
        self._scope.cancel()

    def stop(self) -> None:
        """SIGSTOP."""
        if self.alive and not self.network.dead:
            self.world.trace.note(self.number, "stopped")
            self._mourn()
            self.world.stopper.stop(self.number)

    def go_on(self) -> None:
        """SIGCONT."""
        if self.world.stopper.is_stopped(self.number):
            self.world.trace.note(self.number, "goes on")
            self.world.book.returned(self.identity.peer_id)
            self.world.stopper.go_on(self.number)
            self.network.go_on()

    def recover(self) -> None:
        """Clock and model are right from now on."""
        self.skew_ms = 0
        self.model.recover()

    # --- the person behind it

    def give(self, goal: Goal) -> None:
        """Give a goal, within its life."""
        if self._nursery is not None and not self._deciding:
            self._nursery.start_soon(self._give, goal)

    def decide(self, plan: OpId, act: AnyAct) -> None:
        """Decide something, one thing at a time, within its life."""
        if self._nursery is not None and not self._deciding:
            self._nursery.start_soon(self._decide, plan, act)

    async def _give(self, goal: Goal) -> None:
        assert self.operator is not None
        self._deciding = True
        try:
            await self.operator.give(goal)
            self.given.append(goal)
        finally:
            self._deciding = False

    async def _decide(self, plan: OpId, act: AnyAct) -> None:
        assert self.operator is not None
        self._deciding = True
        try:
            await self.operator.steer(plan, act)
        finally:
            self._deciding = False

    def _mourn(self) -> None:
        for plan in self.peer.replica.plans.values():
            self.world.book.orphan(plan, self.identity.peer_id)

    # --- faults at a step

    def arm(self, said: Said, fault: Crash | Stop) -> None:
        """Be struck when it says its nth op of a kind."""
        self.triggers.append((said, fault))

    def about_to_say(self, bodies: Sequence[Body]) -> None:
        for body in bodies:
            self._step("before", kind_of(body))

    def to_publish(self, data: bytes) -> None:
        """A frame is about to leave."""
        if self.silent:
            self.errors.append("an observer published something")
        self._left("journalled", data)

    def published(self, data: bytes) -> None:
        """A frame has left."""
        self._left("published", data)

    def _left(self, point: str, data: bytes) -> None:
        for wire in take_apart(data).ops:
            op = SHARED(bytes(wire))
            if op.author == self.identity.peer_id and (point, op.id) not in self._left_ids:
                self._left_ids.add((point, op.id))
                if op.id not in self.disk.ops and not self.network.dead:
                    self.errors.append(f"published before it was on disk: {kind_of(op.body)}")
                self._step(point, kind_of(op.body))

    def _step(self, point: str, kind: str) -> None:
        number = self._said.get((point, kind), 0)
        self._said[point, kind] = number + 1
        for trigger in list(self.triggers):
            said, fault = trigger
            if (said.point, said.kind, said.nth) == (point, kind, number):
                self.triggers.remove(trigger)
                if said.then_s:
                    self.world.nursery.start_soon(self.world.strike_later, fault, said.then_s)
                else:
                    self.world.strike(fault)
                return

    # --- figures

    def traffic(self) -> int:
        """Frames published, requests made and answered in this life."""
        traffic = self.network.traffic
        return traffic.published + traffic.asked + traffic.answered
