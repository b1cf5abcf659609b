"""The peers and agents of this program, in trio: starts, ends and steers them."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
import trio

from swarmtui.agents import AgentSettings, PromptError, Prompts, make
from swarmtui.agents.operator import Operator
from swarmtui.config import Config
from swarmtui.paths import Folders, prompts_dir
from swarmtui.peer.journal import Journal
from swarmtui.peer.network import NetworkError
from swarmtui.peer.peer import Card, Peer
from swarmtui.plan.ops import AnyAct, Goal, Note, OpId, Pause, PeerId, Pick, Policy, Retry, SetPolicy, Veto
from swarmtui.plan.replica import Replica
from swarmtui.view import Role, SwarmView

from . import names
from .camera import Camera, empty
from .errors import SwarmError
from .identities import Identities
from .member import Member
from .metering import Account, Meter
from .models import Chosen, Models
from .networks import Networks
from .sharing import share

GONE_SECONDS = 30.0
MAX_LOCAL_AGENTS = 24
"""A libp2p host costs milliseconds of CPU per message: more in one process slow all of them down."""


class Crew:
    """Everything that runs in the swarm's thread. Its methods are called there, but for `picture` and `summary`."""

    def __init__(self, config: Config, *, resume: bool, listen_only: bool = False) -> None:
        self._config = config
        self._resume = resume
        self._gateway: Role = "observer" if listen_only else "operator"
        """Whose peer meets the others of the swarm, at the configured port; the agents here know each other anyway."""
        self._folders = Folders(config.data_dir)
        self._identities = Identities(self._folders.keys)
        self._journal = Journal(self._folders.journal(config.swarm.name))
        self._plans: tuple[OpId, ...] = ()
        self._meter = Meter()
        self._members: dict[PeerId, Member] = {}
        self._rng = random.Random(config.seed)
        self._networks = Networks(config.swarm, self._folders, self._rng)
        self._scope = trio.CancelScope()
        self._started = time.time()
        self._nursery: trio.Nursery | None = None
        self._camera: Camera | None = None
        self._operator: Operator | None = None
        self._arriving: set[str] = set()
        """Names of agents that are being started."""
        self._drafters = 0
        self._last = empty(config)

    @property
    def picture(self) -> SwarmView:
        return self._camera.picture if self._camera else self._last

    def summary(self) -> dict[str, Any]:
        """Figures of the run so far."""
        plans = self._camera.replica.plans if self._camera else {}
        return self._meter.summary(list(plans.values())) | {
            "seconds": round(time.time() - self._started, 1),
            "ops": self.picture.ops,
            "sent": sum(member.network.sent for member in list(self._members.values())),
        }

    async def run(self, started: Callable[[], None]) -> None:
        """Start the configured agents, call `started`, go on until `stop`.

        Raises:
            SwarmError: no model, no network, or own prompts that can't be read.
        """
        self._prompts = self._read_prompts()
        with self._scope:
            async with trio.open_nursery() as nursery:
                self._models = Models(self._config, self._meter, nursery)
                agents = [] if self._gateway == "observer" else self._config.agents.roles()
                await self._models.prepare(role for role, count in agents if count)
                self._nursery = nursery
                offline = await self._networks.look()
                kept = self._journal.plans()
                self._plans = await self._unfinished(kept[0].id) if self._resume and kept else ()
                observer = await self._join("observer", "observer")
                self._camera = Camera(self._config, observer.peer, self._members, self._models, kept)
                self._camera.troubles += [trouble for trouble in (offline, self._identities.notice) if trouble]
                if self._gateway == "operator":
                    self._operator = Operator((await self._join("operator", "you")).peer)
                self._camera.coming = dict(agents)
                await nursery.start(self._camera.run)
                nursery.start_soon(share, lambda: [member.peer for member in self._living()], observer.peer)
                started()
                await self._catch_up()
                for role, count in agents:
                    for _ in range(count):
                        await self._add_configured(role)
                self._camera.coming = {}
                await trio.sleep_forever()

    @staticmethod
    def _read_prompts() -> Prompts:
        folder = prompts_dir()
        try:
            return Prompts.load(folder if folder.is_dir() else None)
        except PromptError as error:
            raise SwarmError(str(error), f"mend the file, or take it out of {folder}") from error

    async def _unfinished(self, newest: OpId) -> tuple[OpId, ...]:
        """The newest plan of the journal, if there is still something to do for it.

        The older ones stay on disk until the person asks for one: taking up all would set the agents to work on what
        the person has left behind.
        """
        replica = Replica()
        replica.add_many(self._journal.load(newest))
        await trio.lowlevel.checkpoint()
        plan = replica.plans.get(newest)
        return (newest,) if plan is not None and not plan.done else ()

    async def _catch_up(self) -> None:
        """Before the agents go on with a plan, hear what the swarm knows of it.

        They know each other only, and the operator's peer the others: what is missing in a torn journal they would
        miss together, and do and say it again.
        """
        if self._operator is not None:
            for plan in self._plans:
                await self._operator.peer.settled(plan)

    async def _close(self) -> None:
        with trio.CancelScope(shield=True), trio.move_on_after(6):
            async with trio.open_nursery() as nursery:
                for member in list(self._members.values()):
                    nursery.start_soon(member.leave)

    def stop(self) -> None:
        """End everything politely."""
        if self._nursery is None:
            self._scope.cancel()
            return
        self.start_soon(self._stop)

    async def _stop(self) -> None:
        await self._close()
        self._scope.cancel()

    def start_soon(self, act: Callable[[], Awaitable[None]]) -> bool:
        """Run a command. False if the swarm doesn't run."""
        if self._nursery is None or self._scope.cancel_called:
            return False
        self._nursery.start_soon(act)
        return True

    async def give_goal(self, title: str, detail: str, policy: Policy | None) -> str:
        chosen = policy or self._config.policy.to_policy(self._scorers())
        self._meter.goal()
        op = await self._voice.give(Goal(title=title, detail=detail, policy=chosen, nonce=self._rng.randbytes(8)))
        self._camera_now.show(op.id)
        return f"goal given: {title}"

    def _scorers(self) -> int:
        """How many scorers the quorum is reckoned from: those configured, or those that are here."""
        here = sum(member.role == "scorer" and member.state != "gone" for member in self._members.values())
        return max(here, self._config.agents.scorers, 1)

    async def add(
        self, role: Role, *, name: str = "", angle: str = "", model: str = "", skills: tuple[str, ...] = ()
    ) -> str:
        """Start an agent; returns when it runs."""
        here = sum(m.agent is not None and m.state != "gone" for m in self._members.values())
        if here + len(self._arriving) >= MAX_LOCAL_AGENTS:
            raise SwarmError(f"{MAX_LOCAL_AGENTS} agents run here", "start more in another program or machine")
        taken = {member.name for member in self._members.values()} | self._camera_now.names() | self._arriving
        if name and name in taken:
            raise SwarmError(f"there is an agent called {name}", "choose another name")
        name = name or names.pick(taken)
        self._arriving.add(name)
        try:
            await self._join(role, name, angle=angle, model=model, skills=skills)
        finally:
            self._arriving.discard(name)
        return f"{role} {name} has joined"

    async def _add_configured(self, role: Role) -> None:
        """Start an agent that the configuration asks for. One that can't start is told of and costs no other."""
        try:
            await self.add(role)
        except SwarmError as error:
            self._camera_now.troubles.append(f"A {role} couldn't be started: {error}. {error.remedy}".strip())

    async def _join(
        self, role: Role, name: str, *, angle: str = "", model: str = "", skills: tuple[str, ...] = ()
    ) -> Member:
        if self._nursery is None:
            raise SwarmError("the swarm isn't running")
        works = role not in ("observer", "operator")
        if not works:
            return await self._settle(role, name, None, angle, skills)
        brain = await self._models.take(model or self._models.usual(role))
        try:
            return await self._settle(role, name, brain, angle, skills)
        except BaseException:
            brain.close()
            raise

    async def _settle(self, role: Role, name: str, brain: Chosen | None, angle: str, skills: tuple[str, ...]) -> Member:
        """Give a newcomer its identity, network, peer and agent, and let it live."""
        assert self._nursery is not None
        skills = skills or (tuple(self._config.agents.skills) if role == "executor" else ())
        lease = self._identities.take(role)
        card = Card(
            name=role if role == "operator" else name,  # "you" is a name for the person here alone
            role=role,
            skills=skills,
            model=brain.name if brain else "",
            machine=os.uname().nodename,
        )
        network = self._networks.node(lease.identity, gateway=role == self._gateway)
        peer = Peer(
            lease.identity,
            network,
            now_ms=lambda: time.time_ns() // 1_000_000,
            rng=random.Random(self._rng.random()),
            journal=self._journal,
            silent=role == "observer",
            card=card,
            fresh=lease.fresh,
            plans=self._plans,
            beat_s=0.0,
        )
        agent = None
        if brain is not None:
            angle = angle or (self._next_angle() if role == "decomposer" else "")
            settings = AgentSettings(name=name, angle=angle, skills=skills, prompts=self._prompts)
            agent = make(role, peer, brain, random.Random(self._rng.random()), settings)
            agent.account = Account(self._meter, name)
        member = Member(role, name, peer, network, lease, agent, brain)
        local = [address for other in self._living() for address in other.network.addresses[:1]]
        try:
            await self._nursery.start(member.live)
        except (NetworkError, OSError) as error:
            raise SwarmError(str(error), getattr(error, "remedy", "")) from error
        self._members[peer.peer_id] = member
        for address in local:
            await network.connect(address)
        return member

    def _next_angle(self) -> str:
        """Another first angle for each decomposer of this program."""
        self._drafters += 1
        angles = self._prompts.angles
        return angles[(self._drafters - 1) % len(angles)].name

    def _living(self) -> list[Member]:
        return [member for member in self._members.values() if member.state in ("running", "paused")]

    @property
    def _camera_now(self) -> Camera:
        if self._camera is None:
            raise SwarmError("the swarm isn't running")
        return self._camera

    @property
    def _voice(self) -> Operator:
        if self._operator is None:
            raise SwarmError("this program only listens")
        return self._operator

    def _find(self, role: Role) -> Member:
        return next(member for member in self._members.values() if member.role == role)

    def _agent(self, peer: PeerId) -> Member:
        member = self._members.get(peer)
        if member is None:
            raise SwarmError("that agent lives in another program", "end it there")
        if member.agent is None:
            raise SwarmError(f"the {member.role} is this program itself", "quit to end it")
        if member.state not in ("running", "paused"):
            raise SwarmError(f"{member.name} is {member.state}")
        return member

    async def kill(self, peer: PeerId) -> str:
        member = self._members.get(peer)
        if member is None or member.state != "gone":
            member = self._agent(peer)
            await member.leave()
        self._members.pop(peer, None)
        return f"{member.name} has left"

    async def crash(self, peer: PeerId) -> str:
        member = self._agent(peer)
        await member.crash()
        self.start_soon(partial(self._remove_later, member))
        return f"{member.name} has crashed"

    async def _remove_later(self, member: Member) -> None:
        """Show a crashed agent as gone for about as long as the others take to give it up."""
        await trio.sleep(GONE_SECONDS)
        if self._members.get(member.peer.peer_id) is member:
            del self._members[member.peer.peer_id]

    async def use_model(self, spec: str, peer: PeerId) -> str:
        """Give an agent another model; without one, the agents that are added from now on."""
        if not peer:
            return f"new agents use {await self._models.use(spec)}"
        member = self._agent(peer)
        assert member.brain is not None
        await member.brain.change(spec)
        member.peer.introduce(msgspec.structs.replace(member.peer.card, model=member.brain.name))
        return f"{member.name} uses {member.brain.name}"

    async def pause(self, peer: PeerId, on: bool) -> str:
        member = self._agent(peer)
        assert member.agent is not None
        member.agent.paused = on
        member.state = "paused" if on else "running"
        return f"{member.name} {'is paused' if on else 'goes on'}"

    async def steer(self, plan: OpId, act: AnyAct) -> str:
        held = self._camera_now.replica.plans.get(plan)
        if held is None:
            raise SwarmError("that plan isn't held here")
        if held.operator != self._voice.peer.peer_id:
            raise SwarmError("only the person who gave the goal can steer it")
        await self._voice.steer(plan, act)
        match act:
            case Pause(on=True):
                return "the plan is paused: work that has begun is finished, nothing new begins"
            case Pause():
                return "the plan goes on"
            case SetPolicy():
                return "the new policy counts from now on"
            case Note():
                return "noted: the agents mind it in what they do from now on"
            case Retry():
                return "it will be done again"
            case Pick():
                return "the draft is picked"
            case Veto():
                return "the draft is ruled out"

    async def show(self, plan: OpId) -> str:
        camera = self._camera_now
        held = camera.replica.plans.get(plan)
        title = held.goal.title if held else next((kept.title for kept in camera.picture.kept if kept.id == plan), None)
        if title is None:
            raise SwarmError("that plan isn't held here")
        if held is None:
            self._plans += (plan,)
            for member in self._living():
                member.peer.take_up(plan)
        camera.show(plan)
        return f"showing {title}" if held else f"{title}: taken up again"

    async def connect(self, address: str) -> str:
        if address.rpartition("/")[2] in self._members:
            raise SwarmError("that's an address of this program", "give one that another program shows")
        try:
            await self._find(self._gateway).network.connect(address)
        except NetworkError as error:
            raise SwarmError(str(error), "the detail of “you” in the other program shows its address") from error
        return "Dialling. Who is there will stand in Agents."
