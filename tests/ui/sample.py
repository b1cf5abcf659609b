"""Hand-made pictures and a swarm that only notes what it is asked."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import msgspec

from swarmtui.plan.ops import Policy
from swarmtui.plan.state import State
from swarmtui.view import (
    AgentView,
    DraftView,
    GossipLine,
    ModelChoice,
    Notice,
    PlanView,
    Role,
    Stall,
    SwarmView,
    TaskView,
    VoteView,
)

NOW = 1_767_276_131.0
"""2026-01-01 14:02:11 UTC."""


def now() -> float:
    """The time on every hand-made screen."""
    return NOW


def ident(name: str) -> bytes:
    """Return 32 bytes for a name."""
    return hashlib.sha256(name.encode(errors="replace")).digest()


def task(name: str, state: State = State.READY, **more: Any) -> TaskView:
    """Return a task whose id comes from its name."""
    base: dict[str, Any] = {
        "id": ident(name),
        "parent": ident("root"),
        "depth": 1,
        "title": name,
        "detail": "",
        "state": state,
        "branch": False,
        "children": (),
        "stalled": None,
        "status": state.value,
        "holder": "",
        "since": 0.0,
        "output": "",
        "result_by": "",
        "needs": "write",
        "after": (),
        "notes": (),
        "drafts": (),
        "history": (),
    }
    base.update(more)
    return TaskView(**base)


def vote(scorer: str, approve: bool, marks: tuple[int, int, int], critique: str = "") -> VoteView:
    """Return a vote."""
    return VoteView(scorer, approve, *marks, critique, NOW - 30)


def draft(name: str, author: str, steps: tuple[str, ...], **more: Any) -> DraftView:
    """Return a draft whose id comes from its name."""
    base: dict[str, Any] = {
        "id": ident(name),
        "author": author,
        "angle": name,
        "rationale": "",
        "steps": steps,
        "refines": False,
        "mark": None,
        "approvals": 0,
        "votes": (),
        "accepted": False,
        "vetoed": False,
        "at": NOW - 60,
    }
    base.update(more)
    return DraftView(**base)


def plan_of(tasks: list[TaskView], **more: Any) -> PlanView:
    """Return a plan of these tasks; the first is the root."""
    base: dict[str, Any] = {
        "id": tasks[0].id,
        "title": tasks[0].title,
        "detail": "",
        "operator": "you",
        "mine": True,
        "policy": Policy(),
        "paused": False,
        "done": False,
        "stalled": (),
        "root": tasks[0].id,
        "tasks": {t.id: t for t in tasks},
        "started": NOW - 600,
        "counts": {
            "leaves": 27,
            "done": 11,
            "working": 4,
            "voting": 2,
            "ready": 5,
            "failed": 0,
            "drafts": 9,
            "ops": 143,
        },
    }
    base.update(more)
    return PlanView(**base)


def japan() -> PlanView:
    """The plan of the picture in the design."""
    food_drafts = (
        draft(
            "by place",
            "ada",
            ("List dishes of Tokyo", "List dishes of Kyoto", "Book two dinners"),
            mark=72.0,
            approvals=1,
            rationale="Each city has its own kitchen, so split by where one eats.",
            votes=(
                vote("bob", True, (71, 80, 64)),
                vote("eva", False, (40, 75, 50), "The dinners aren't tied to dates."),
            ),
        ),
        draft(
            "by budget",
            "abe",
            ("Street food", "Mid-range places", "One feast"),
            mark=48.0,
            votes=(vote("bob", False, (40, 60, 44), "Says nothing of where."),),
        ),
    )
    tasks = [
        task(
            "root",
            State.ACCEPTED,
            title="Plan a two-week trip to Japan",
            parent=None,
            depth=0,
            branch=True,
            status="done 3/8",
            children=tuple(ident(n) for n in ("flights", "food", "temples", "kyoto")),
            detail="Two adults, in April, calm.",
        ),
        task(
            "flights",
            State.ACCEPTED,
            title="Book flights and a rail pass",
            branch=True,
            status="done 1/3",
            children=(ident("fares"), ident("pass"), ident("seats")),
        ),
        task(
            "fares",
            State.CLAIMED,
            title="Compare fares",
            parent=ident("flights"),
            depth=2,
            holder="cleo",
            since=NOW - 41,
            status="cleo",
            notes=("We can leave a day earlier.",),
            history=((NOW - 90, 'made by ada\'s draft "by place"'), (NOW - 41, "cleo claimed it")),
        ),
        task("pass", State.READY, title="Buy the rail pass", parent=ident("flights"), depth=2),
        task(
            "seats",
            State.DONE,
            title="Reserve seats",
            parent=ident("flights"),
            depth=2,
            status="done",
            result_by="cleo",
            since=NOW - 20,
            output="Reserve seats for the three long rides:\n\n1. Tokyo to Kyoto\n2. Kyoto to Hiroshima\n3. back",
        ),
        task("food", State.DRAFT, title="Food", branch=True, status="2 drafts · 1 of 2 votes", drafts=food_drafts),
        task(
            "temples",
            State.DRAFT,
            title="Temples",
            branch=True,
            status="1 draft",
            drafts=(draft("by age", "ada", ("Old", "New")),),
            stalled=Stall("1 scorer, quorum 2", "press {add_scorer} to add a scorer"),
        ),
        task("kyoto", State.WAITING, title="Days in Kyoto", status="waits for Food", after=("Food",)),
    ]
    return plan_of(tasks)


def agent(name: str, role: Role, **more: Any) -> AgentView:
    """Return an agent."""
    base: dict[str, Any] = {
        "peer": f"12D3KooW{name}",
        "name": name,
        "role": role,
        "local": True,
        "state": "running",
        "doing": "idle",
        "subject": "",
        "since": NOW - 12,
        "tokens_per_second": 0.0,
        "ops": 3,
        "model": "SmolLM2-135M-Instruct Q4_1",
        "skills": ("write",),
        "tail": "",
        "fault": "",
    }
    base.update(more)
    return AgentView(**base)


def crew() -> tuple[AgentView, ...]:
    """The agents of the picture in the design."""
    return (
        agent(
            "ada",
            "decomposer",
            doing="drafting",
            subject="Food in Kyoto",
            tokens_per_second=14.2,
            ops=12,
            tail='{"steps": [{"title": "List the markets of Kyoto',
        ),
        agent("bob", "scorer", doing="judging", subject="draft 2 of 3", ops=9),
        agent("cleo", "executor", doing="working", subject="Compare fares", tokens_per_second=9.1, since=NOW - 41),
        agent("dora", "executor", subject="no ready task fits", local=False),
        agent("eva", "scorer", state="gone", subject="left", ops=4, local=False),
    )


def view_of(plan: PlanView | None, **more: Any) -> SwarmView:
    """Return a picture of a running swarm."""
    base: dict[str, Any] = {
        "version": 1,
        "plan": plan,
        "plans": ((plan.id, plan.title),) if plan else (),
        "agents": crew(),
        "gossip": sayings(),
        "ops_per_second": 3.1,
        "rates": (0, 1, 2, 4, 7, 3, 1, 5, 2, 3),
        "ops": 143,
        "fingerprint": "3f9a12c47be08d51",
        "complete": True,
        "peers": 5,
        "machines": 1,
        "model": "SmolLM2-135M-Instruct Q4_1",
        "scripted": False,
        "secured": True,
        "notices": (),
    }
    base.update(more)
    return SwarmView(**base)


def sayings() -> tuple[GossipLine, ...]:
    """A few sentences of the swarm."""
    return (
        GossipLine(NOW - 45, 'ada proposed "by place" for Food: 3 steps', ident("food")),
        GossipLine(NOW - 41, "cleo claimed Compare fares", ident("fares")),
        GossipLine(NOW - 30, 'eva refused "by place" for Food (specific 40, distinct 75, complete 50)', ident("food")),
        GossipLine(NOW, 'bob approved "by place" for Food (specific 71, distinct 80, complete 64)', ident("food")),
    )


def nothing() -> SwarmView:
    """The picture before anything has happened."""
    return view_of(
        None, version=0, agents=(), gossip=(), rates=(0,) * 30, ops=0, ops_per_second=0.0, fingerprint="", peers=0
    )


@dataclass
class SampleConfig:
    """What the screen reads of the configuration."""

    preset: str = "laptop"
    model: str = "auto"
    joins: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)


def choice(name: str, **more: Any) -> ModelChoice:
    """Return a model to choose, 5 GB large."""
    base: dict[str, Any] = {
        "spec": f"/models/{name}.gguf",
        "source": "LM Studio",
        "size": "4.7 GB",
        "quantisation": "Q4_K_M",
        "needs": "6.1 GB",
        "context": 131_072,
    }
    return ModelChoice(name=name, **(base | more))


CHOICES = (
    choice("SmolLM2-135M-Instruct", source="bundled", size="0.1 GB", quantisation="Q4_1", needs="0.7 GB", context=8192),
    choice("Llama-3.1-8B-Instruct"),
    choice("qwen3:4b", source="Ollama", size="2.5 GB", needs="3.4 GB", note="no chat template"),
    choice("Llama-3.3-70B", size="43 GB", problem="too large: needs 46 GB of 25 GB", needs="46 GB"),
    choice("half-a-file", problem="truncated", needs=""),
    ModelChoice(spec="scripted", name="scripted", source="no model"),
)


class FakeSwarm:
    """Notes every command, answers at once with a sentence; `refuse` makes the next commands fail."""

    def __init__(self, view: SwarmView | None = None) -> None:
        self.latest = view if view is not None else nothing()
        self.asked: list[tuple[Any, ...]] = []
        self.refuse: Exception | None = None
        self.start_error: Exception | None = None
        self.choices: tuple[ModelChoice, ...] = CHOICES
        self.models_tried: list[str] = []
        self.models_error: Exception | None = None
        self.started = threading.Event()
        self.stopped = False
        self.start_thread: threading.Thread | None = None

    def start(self, model: str = "") -> None:
        self.models_tried.append(model)
        self.start_thread = threading.current_thread()
        self.started.set()
        if self.start_error is not None and not model:
            raise self.start_error

    def stop(self, timeout: float = 10.0) -> bool:
        self.stopped = True
        return True

    def change(self, **fields: Any) -> None:
        """Put a newer picture in place of the latest."""
        self.latest = msgspec.structs.replace(self.latest, version=self.latest.version + 1, **fields)

    def _noted(self, *what: Any) -> Future[str]:
        self.asked.append(what)
        future: Future[str] = Future()
        if self.refuse is not None:
            future.set_exception(self.refuse)
        else:
            future.set_result(f"{what[0]} is done")
        return future

    def give_goal(self, title: str, detail: str = "", policy: Policy | None = None) -> Future[str]:
        return self._noted("give_goal", title, detail)

    def add_agent(
        self, role: Role, *, name: str = "", angle: str = "", model: str = "", skills: Any = ()
    ) -> Future[str]:
        return self._noted("add_agent", role, name, angle, model, tuple(skills))

    def models(self) -> tuple[ModelChoice, ...]:
        if self.models_error is not None:
            raise self.models_error
        return self.choices

    def use_model(self, spec: str, peer: str = "") -> Future[str]:
        return self._noted("use_model", spec, peer)

    def kill(self, peer: str) -> Future[str]:
        return self._noted("kill", peer)

    def crash(self, peer: str) -> Future[str]:
        return self._noted("crash", peer)

    def pause_agent(self, peer: str, on: bool) -> Future[str]:
        return self._noted("pause_agent", peer, on)

    def steer(self, plan: bytes, act: Any) -> Future[str]:
        return self._noted("steer", plan, act)

    def show_plan(self, plan: bytes) -> Future[str]:
        return self._noted("show_plan", plan)

    def connect(self, address: str) -> Future[str]:
        return self._noted("connect", address)


def notice(text: str, severity: Any = "warning") -> Notice:
    """Return a notice."""
    return Notice(text, severity)
