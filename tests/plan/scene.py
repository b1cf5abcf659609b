"""A plan told op by op, for tests that look at one thing."""

from __future__ import annotations

from swarmtui.plan.envelope import Identity, seal, task_id
from swarmtui.plan.ops import (
    AnyAct,
    AnyBody,
    Claim,
    Goal,
    Marks,
    Op,
    OpId,
    PeerId,
    Policy,
    Proposal,
    Release,
    Result,
    Steer,
    Step,
    TaskId,
    Vote,
)
from swarmtui.plan.progress import Living
from swarmtui.plan.replica import Replica
from swarmtui.plan.state import Plan, Task

PEOPLE = ("you", "ada", "bob", "cleo", "dora", "eva", "finn", "gus")
KEYS = {name: Identity.from_seed(bytes([number]) * 32) for number, name in enumerate(PEOPLE, 1)}
START_MS = 1_700_000_000_000


def name_of(peer: PeerId) -> str:
    return next((name for name, key in KEYS.items() if key.peer_id == peer), peer)


def peer(name: str) -> PeerId:
    return KEYS[name].peer_id


def living(decomposers: str = "", scorers: str = "", executors: str = "", skills: str = "write") -> Living:
    """Names, separated by blanks."""
    return Living(
        decomposers=frozenset(map(peer, decomposers.split())),
        scorers=frozenset(map(peer, scorers.split())),
        executors={peer(name): frozenset(skills.split()) for name in executors.split()},
    )


class Scene:
    """A replica and the voices that fill it, one second after the other."""

    def __init__(self, title: str = "Plan a trip", **policy: object) -> None:
        self.replica = Replica()
        self.seconds = 0
        self._seqs: dict[str, int] = {}
        self.goal = self.say("you", Goal(title=title, policy=Policy(**policy)))  # type: ignore[arg-type]

    def say(self, who: str, body: AnyBody) -> Op:
        self.seconds += 1
        seq = self._seqs.get(who, 0)
        self._seqs[who] = seq + 1
        plan = b"" if isinstance(body, Goal) else self.goal.id
        op = seal(KEYS[who], plan, seq, (START_MS + self.seconds * 1000) << 16, body)
        self.replica.add(op)
        return op

    def draft(self, who: str, *steps: str | Step, task: TaskId | None = None, angle: str = "by place") -> Op:
        made = tuple(step if isinstance(step, Step) else Step(title=step, atomic=True) for step in steps)
        return self.say(who, Proposal(task=task or self.goal.id, steps=made, angle=angle))

    def vote(self, who: str, draft: Op, approve: bool = True, mark: int = 70) -> Op:
        return self.say(who, Vote(draft.id, approve, Marks(mark, mark + 10, mark - 10), "too vague"))

    def accept(self, draft: Op, *scorers: str) -> None:
        for who in scorers or ("cleo", "dora"):
            self.vote(who, draft)

    def claim(self, who: str, task: TaskId, prior: OpId = b"") -> Op:
        return self.say(who, Claim(task, prior))

    def result(self, claim: Op, output: str = "the work") -> Op:
        return self.say(name_of(claim.author), Result(claim.id, output))

    def release(self, claim: Op, reason: str = "model failed") -> Op:
        return self.say(name_of(claim.author), Release(claim.id, reason))

    def steer(self, act: AnyAct, who: str = "you") -> Op:
        return self.say(who, Steer(act))

    @property
    def plan(self) -> Plan:
        return self.replica.plans[self.goal.id]

    def task(self, draft: Op | None = None, step: int = 0) -> Task:
        return self.plan.tasks[task_id(draft.id, step) if draft else self.goal.id]
