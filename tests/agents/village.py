"""A whole swarm in memory for tests: real peers and agents, virtual time, a model made of code."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable

import trio

from swarmtui.agents import Agent, AgentSettings, make
from swarmtui.agents.operator import Operator
from swarmtui.llm.model import Likelihood, ModelError, Reply, Request
from swarmtui.peer.journal import Journal
from swarmtui.peer.memory import Faults, MemoryHub
from swarmtui.peer.peer import Card, Peer
from swarmtui.plan.envelope import Identity
from swarmtui.plan.ops import Goal, OpId, Policy
from swarmtui.plan.state import Plan, Task

EPOCH_MS = 1_800_000_000_000
VERBS = (
    "buy",
    "find",
    "hire",
    "paint",
    "write",
    "draw",
    "test",
    "sell",
    "plant",
    "cook",
    "film",
    "sort",
    "wash",
    "build",
    "clean",
)
THINGS = (
    "ovens",
    "maps",
    "songs",
    "boats",
    "chairs",
    "lamps",
    "seeds",
    "books",
    "tents",
    "cups",
    "coats",
    "drums",
    "bikes",
    "stamps",
    "ropes",
)


class CodeModel:
    """A model whose answers are made up, in virtual time, from its own generator.

    Args:
        rng: its chance.
        seconds: how long an answer takes.
        mark: what it marks every draft with; None: by chance, 30 to 90.
    """

    name = "code"

    def __init__(self, rng: random.Random, seconds: float = 2.0, mark: int | None = None) -> None:
        self.rng = rng
        self.seconds = seconds
        self.mark = mark
        self.failing: Callable[[Request], bool] = lambda request: False
        self.calls: list[str] = []

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        self.calls.append(request.purpose)
        for piece in range(4):
            await trio.sleep(self.seconds / 4 * self.rng.uniform(0.8, 1.2))
            if on_text is not None:
                on_text(f"piece {piece} ")
        if self.failing(request):
            raise ModelError("the child died")
        if request.purpose == "draft":
            low, _ = request.facts["fan_out"]
            pairs = self.rng.sample(list(itertools.product(VERBS, THINGS)), 3 * low)
            titles = [f"{verb.title()} {thing} number {n}" for n, (verb, thing) in enumerate(pairs)]
            chosen: list[str] = []
            for title in titles:
                if all(not set(title.split()[:2]) & set(other.split()[:2]) for other in chosen) and len(chosen) < low:
                    chosen.append(title)
            return Reply(text="", value={"steps": [{"title": title, "atomic": False} for title in chosen]})
        if request.purpose == "judge":
            marks = {name: self.mark or self.rng.randint(30, 90) for name in ("specific", "distinct", "complete")}
            return Reply(text="", value=marks | {"critique": "Step 1 is weak."})
        told = ", ".join(request.facts.get("children", []))
        return Reply(text=f"{request.subject} is done. {told}")

    async def likelihood(self, request: Likelihood) -> list[float]:
        raise ModelError("this model can't")


class Village:
    """Peers with agents on one hub. Use inside a nursery that the test cancels at its end."""

    def __init__(self, nursery: trio.Nursery, seed: int = 1, faults: Faults | None = None) -> None:
        self.rng = random.Random(seed)
        self.hub = MemoryHub(random.Random(seed + 1), faults)
        self.nursery = nursery
        self.scopes: dict[Agent, trio.CancelScope] = {}
        self._numbers = itertools.count(1)

    def now_ms(self) -> int:
        return EPOCH_MS + int(trio.current_time() * 1000)

    def peer(
        self,
        role: str,
        identity: Identity | None = None,
        skills: tuple[str, ...] = (),
        journal: Journal | None = None,
    ) -> Peer:
        number = next(self._numbers)
        identity = identity or Identity.from_seed(self.rng.randbytes(32))
        card = Card(name=f"{role[:1]}{number}", role=role, skills=skills, model="code")
        network = self.hub.network(identity.peer_id)
        rng = random.Random(self.rng.random())
        silent = role == "observer"
        return Peer(identity, network, now_ms=self.now_ms, rng=rng, silent=silent, card=card, journal=journal)

    async def add(
        self,
        role: str,
        model: CodeModel | None = None,
        *,
        identity: Identity | None = None,
        skills: tuple[str, ...] = ("write",),
        journal: Journal | None = None,
    ) -> Agent:
        """Start an agent and its peer."""
        peer = self.peer(role, identity, skills, journal)
        model = model or CodeModel(random.Random(self.rng.random()))
        settings = AgentSettings(name=peer.card.name, skills=skills)
        agent = make(role, peer, model, random.Random(self.rng.random()), settings)
        scope = self.scopes[agent] = trio.CancelScope()

        async def live(task_status: trio.TaskStatus[None]) -> None:
            with scope:
                async with trio.open_nursery() as nursery:
                    await nursery.start(peer.run)
                    await nursery.start(agent.run)
                    task_status.started()

        await self.nursery.start(live)
        return agent

    async def add_all(self, roles: Iterable[str]) -> list[Agent]:
        return [await self.add(role) for role in roles]

    async def operator(self) -> Operator:
        peer = self.peer("operator")
        await self.nursery.start(peer.run)
        return Operator(peer)

    def crash(self, agent: Agent) -> None:
        """End an agent and its peer without a word."""
        agent.peer.abrupt = True
        self.scopes[agent].cancel()

    async def kill(self, agent: Agent) -> None:
        """Let it leave politely."""
        await agent.leave()
        self.scopes[agent].cancel()


async def until(peer: Peer, true: Callable[[], bool], seconds: float) -> None:
    """Wait for something to be so in a peer's plans.

    Raises:
        trio.TooSlowError: it wasn't within so many (virtual) seconds.
    """
    with trio.fail_after(seconds), peer.watch() as watch:
        while not true():
            with trio.move_on_after(1.0):
                await watch.wait()


def plan_of(peer: Peer, plan_id: OpId) -> Plan:
    return peer.replica.plans[plan_id]


def live_tasks(plan: Plan) -> list[Task]:
    return [task for task in plan.tasks.values() if task.live]


def goal(**policy: object) -> Goal:
    settings = {"need": 2, "of": 2, "rivals": 2, "rounds": 1, "max_depth": 2, "fan_out": (2, 4)} | policy
    return Goal(title="Open a small bakery", policy=Policy(**settings))  # type: ignore[arg-type]
