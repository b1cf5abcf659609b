"""Makes the pictures that the screen shows, from the observer's replica and what is heard of the agents."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec
import trio

from swarmtui.config import Config
from swarmtui.peer.beat import next_beat
from swarmtui.peer.journal import PlanSummary
from swarmtui.peer.peer import Peer
from swarmtui.peer.presence import Heard
from swarmtui.plan.clock import to_seconds
from swarmtui.plan.narrative import sentence, task_of
from swarmtui.plan.ops import OpId, PeerId, TaskId
from swarmtui.plan.picture import Picture
from swarmtui.plan.progress import Living
from swarmtui.plan.replica import Replica
from swarmtui.plan.state import Changes
from swarmtui.view import AgentView, GossipLine, KeptPlan, Notice, PlanView, Role, SwarmView

from . import names
from .member import Member
from .models import Models

ROLES: tuple[Role, ...] = get_args(Role)
TICK_SECONDS = 0.1
GOSSIP_LINES = 200
RATE_SECONDS = 30
LOOK_SECONDS, REST_SECONDS, DRAW_LOOKS = 0.5, 1.0, 3
"""How often agents are looked at though nothing was heard, while they're at work and while they rest, and after how
many such looks all is drawn anew: a swarm with nothing to do costs next to nothing."""


def empty(config: Config) -> SwarmView:
    """The picture before anything runs."""
    return SwarmView(
        version=0,
        plan=None,
        plans=(),
        agents=(),
        gossip=(),
        ops_per_second=0.0,
        rates=(0.0,) * RATE_SECONDS,
        ops=0,
        fingerprint="",
        complete=False,
        addresses=(),
        peers=0,
        machines=1,
        model=config.model,
        scripted=config.model == "scripted",
        secured=bool(config.swarm.secret),
        notices=(),
    )


class Camera:
    """Keeps `picture` current, at most ten times a second, until its task is cancelled."""

    def __init__(
        self,
        config: Config,
        observer: Peer,
        members: Mapping[PeerId, Member],
        models: Models,
        kept: Sequence[PlanSummary] = (),
    ) -> None:
        """`kept`: what the journal held at the start, latest first."""
        self.picture = empty(config)
        self.machine = os.uname().nodename
        self.replica: Replica = observer.replica
        self.troubles: list[str] = []
        """What went wrong in this program and can't be seen in its members."""
        self.coming: Mapping[Role, int] = {}
        """How many agents of each role are still to be started: what only waits for them isn't stalled."""
        self._observer = observer
        self._watch = observer.watch(presence=True)
        self._members = members
        self._models = models
        self._skills = config.agents.skills
        self._kept = [KeptPlan(plan.id, plan.title, plan.started) for plan in reversed(kept)]
        self._names: dict[PeerId, str] = {}
        self._shown: OpId | None = None
        self._plan_picture: Picture | None = None
        self._changed: set[TaskId] = set()
        self._gossip: deque[GossipLine] = deque(maxlen=GOSSIP_LINES)
        self._rates: deque[int] = deque([0] * RATE_SECONDS, maxlen=RATE_SECONDS)
        self._second = 0

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Watch and draw until cancelled."""
        with self._watch as watch:
            self._learn_names()
            self._draw()
            task_status.started()
            looks, seen, every = 0, self._at_work(), LOOK_SECONDS
            while True:
                with trio.move_on_at(next_beat(every)) as looking:
                    await watch.until_told()
                    await trio.sleep(TICK_SECONDS)
                due = watch.told
                if looking.cancelled_caught:
                    looks, before, seen = looks + 1, seen, self._at_work()
                    changing = seen != before or any(self._rates)
                    every = LOOK_SECONDS if changing else REST_SECONDS
                    due |= changing or looks % DRAW_LOOKS == 0
                if due:
                    self._learn_names()
                    # Taken just before drawing: what's drawn and what's counted rest on the same ops.
                    self._take(watch.take())
                    self._draw()

    def _at_work(self) -> list[object]:
        """What can change in our own agents without a word: to compare with the last time."""
        return [
            (
                member.state,
                status and (status.doing, status.subject, status.tail, status.trouble),
            )
            for member in self._members.values()
            for status in (member.agent and member.agent.status,)
        ]

    def show(self, plan: OpId) -> None:
        """Show this plan from the next picture on; it may still be on its way."""
        self._shown = plan
        self._plan_picture = None
        self._watch.tell(Changes())

    def names(self) -> set[str]:
        """The names of every agent heard of."""
        return set(self._names.values())

    def name(self, peer: PeerId) -> str:
        """What people call a peer."""
        return self._names.get(peer) or names.short(peer)

    def _take(self, changes: Changes) -> None:
        for op in changes.added:
            self._count()
            plan = self.replica.plans.get(op.plan)
            if plan is not None:
                text = sentence(op, plan, self.name, self.replica.get)
                self._gossip.append(GossipLine(to_seconds(op.hlc), text, task_of(op, self.replica.get)))
        self._changed.update(task for plan, task in changes.tasks if plan == self._shown)

    def _learn_names(self) -> None:
        for peer, member in self._members.items():
            self._names[peer] = member.name
        strangers = {
            peer: heard.presence.name for peer, heard in self._observer.presences.items() if peer not in self._members
        }
        many = Counter([*strangers.values(), *(member.name for member in self._members.values())])
        for peer, name in strangers.items():
            self._names[peer] = f"{name} {names.short(peer)}".strip() if many[name] > 1 or not name else name

    def _count(self) -> None:
        self._roll()
        self._rates[-1] += 1

    def _roll(self) -> None:
        now = int(trio.current_time())
        for _ in range(min(now - self._second, RATE_SECONDS)):
            self._rates.append(0)
        self._second = now

    def _draw(self) -> None:
        self._roll()
        agents = tuple(self._agents())
        before = self.picture
        rates = tuple(float(rate) for rate in self._rates)
        picture = SwarmView(
            version=before.version,
            plan=self._plan(self._living()),
            plans=tuple(
                (plan.id, plan.goal.title) for plan in sorted(self.replica.plans.values(), key=lambda p: p.op.order)
            ),
            agents=agents,
            gossip=tuple(self._gossip),
            ops_per_second=sum(rates[-6:-1]) / 5,
            rates=rates,
            ops=self.replica.count,
            fingerprint=self.replica.fingerprint.hex(),
            complete=self._observer.complete,
            addresses=self._addresses(),
            peers=len(self._observer.presences),
            machines=len({heard.presence.machine for heard in self._observer.presences.values()} | {self.machine}),
            model=self._models.name or before.model,
            scripted=self._models.scripted,
            secured=before.secured,
            notices=tuple(self._notices()),
            kept=tuple(plan for plan in self._kept if plan.id not in self.replica.plans),
        )
        if picture != before:
            self.picture = msgspec.structs.replace(picture, version=before.version + 1)

    def _plan(self, living: Living) -> PlanView | None:
        if self._shown is None and self.replica.plans:
            self.show(max(self.replica.plans.values(), key=lambda plan: plan.op.order).id)
        if self._shown is None or self._shown not in self.replica.plans:
            return None
        if self._plan_picture is None:
            self._plan_picture = Picture(self._shown, self.name, self.replica.get)
            self._changed = set(self.replica.plans[self._shown].tasks)
        changed, self._changed = self._changed, set()
        me = next((peer for peer, member in self._members.items() if member.role == "operator"), "")
        return self._plan_picture.draw(self.replica.plans[self._shown], changed, living, me)

    def _living(self) -> Living:
        """Who can be heard, of all machines, and isn't resting."""
        heard: dict[PeerId, tuple[str, tuple[str, ...]]] = {
            peer: (item.presence.role, tuple(item.presence.skills))
            for peer, item in self._observer.presences.items()
            if self._heard_well(peer, item)
        }
        for peer, member in self._members.items():
            if member.state in ("running", "starting"):
                heard[peer] = (member.role, member.peer.card.skills)
            else:
                heard.pop(peer, None)
        for role, count in self.coming.items():
            heard |= {f"{role} {n}": (role, tuple(self._skills)) for n in range(count)}
        return Living(
            decomposers=frozenset(peer for peer, (role, _) in heard.items() if role == "decomposer"),
            scorers=frozenset(peer for peer, (role, _) in heard.items() if role == "scorer"),
            executors={peer: frozenset(skills) for peer, (role, skills) in heard.items() if role == "executor"},
        )

    def _agents(self) -> list[AgentView]:
        local = [self._local(peer, member) for peer, member in self._members.items() if member.role != "observer"]
        remote = [
            self._remote(peer, heard)
            for peer, heard in sorted(self._observer.presences.items())
            if peer not in self._members
        ]
        order = {"operator": 0, "decomposer": 1, "scorer": 2, "executor": 3}
        return sorted(local + remote, key=lambda agent: (order.get(agent.role, 4), not agent.local, agent.name))

    def _local(self, peer: PeerId, member: Member) -> AgentView:
        status = member.agent.status if member.agent else None
        return AgentView(
            peer=peer,
            name=member.name,
            role=member.role,
            local=True,
            state=member.state,
            doing=status.doing if status else "listening",
            subject=status.subject if status else "",
            since=status.since if status else 0.0,
            tokens_per_second=status.tokens_per_second(trio.current_time()) if status else 0.0,
            ops=member.peer.said,
            model=member.peer.card.model,
            skills=member.peer.card.skills,
            tail=status.tail if status else "",
            addresses=self._addresses() if member.role == "operator" else (),
            fault=member.fault or self._fault(peer),
            trouble=status.trouble if status else "",
        )

    def _remote(self, peer: PeerId, heard: Heard) -> AgentView:
        presence = heard.presence
        return AgentView(
            peer=peer,
            name=self.name(peer),
            role=_role(presence.role),
            local=False,
            state="running" if self._heard_well(peer, heard) else "silent",
            doing=presence.doing,
            subject=presence.subject,
            since=presence.since / 1000,
            tokens_per_second=presence.tokens_per_second_x10 / 10,
            ops=presence.said,
            model=presence.model,
            skills=tuple(presence.skills),
            tail="",
            fault=self._fault(peer),
        )

    def _heard_well(self, peer: PeerId, heard: Heard) -> bool:
        return not heard.lost and not self._observer.silent_too_long(peer)

    def _addresses(self) -> tuple[str, ...]:
        """Where others can join: at the operator's peer, or the observer's where nobody else is."""
        roles = {member.role: member for member in self._members.values()}
        gateway = roles.get("operator") or roles.get("observer")
        return tuple(gateway.network.addresses) if gateway else ()

    def _fault(self, peer: PeerId) -> str:
        if any(peer in plan.faulty for plan in self.replica.plans.values()):
            return "said two different things under one number: not to be trusted"
        return ""

    def _notices(self) -> list[Notice]:
        texts = [*self.troubles, *self._models.notices]
        for member in self._members.values():
            texts += member.peer.notices
            texts += member.network.notices
            if member.fault:
                texts.append(f"{member.name} ended: {member.fault}")
        return [Notice(text, "warning") for text in dict.fromkeys(texts)]


def _role(said: str) -> Role:
    """A role as a peer states it; what we don't know of listens, as far as we can tell."""
    return next((role for role in ROLES if role == said), "observer")
