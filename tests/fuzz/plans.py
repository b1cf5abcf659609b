"""Histories that no honest peer would tell: the picture depends on the set of ops alone, and can always be shown."""

from __future__ import annotations

from typing import Any

import msgspec

from swarmtui.plan.envelope import SIGNED_PREFIX, Identity, open_op, task_id
from swarmtui.plan.export import to_json, to_markdown
from swarmtui.plan.narrative import sentence, task_of
from swarmtui.plan.ops import MAX_SEQ, Claim, Goal, InvalidOp, Op, OpId, Proposal
from swarmtui.plan.picture import Picture
from swarmtui.plan.progress import Living
from swarmtui.plan.replica import Replica
from tests.plan import naive
from tests.plan.histories import PEOPLE, START, told
from tests.plan.histories import by_id as _person

from .dice import Dice
from .material import bodies, policy
from .mutate import spoil
from .pack import pack

OPS = 50
"""Of one history; the naive fold is slow."""
MARKS = {"specific": 1, "distinct": 2, "complete": 3}
STEPS = [{"title": "a"}, {"title": "b", "atomic": True, "after": [0]}]


class Intruder:
    """Says anything about anything, in plans that others have brought far: `ops` is all that was said."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.ops: list[Op] = []
        self.goals: list[Op] = []
        self.named: list[OpId] = [bytes(32)]
        """Everything that can be referred to: ops, tasks, plans, nothing."""
        self.hlc = START

    def tell(self, count: int) -> list[Op]:
        """A history of about so many ops, the half of them the intruder's."""
        for op in told(self.dice.octets(4 * count))[: count // 2]:
            self._keep(op)
            self.hlc = max(self.hlc, op.hlc)
        if not self.goals:
            self._say(self._who(), self._goal(), b"", 0)
        while len(self.ops) < count and not self.dice.over:
            self._move()
        return self.ops

    def _move(self) -> None:
        dice = self.dice
        match dice.below(16):
            case 0:
                self._say(self._who(), self._goal(), b"", 0)
            case 1:
                self._rival_of_the_goal()
            case 2:
                self._again()
            case 3:
                self._say(self._who(), bodies(dice, self._ids), dice.choose(self.named), self._seq())
            case 4:
                self._say(self._operator(), bodies(dice, self._ids), self._plan(), MAX_SEQ)
            case 9 | 10 | 11 | 12 | 13:
                self._follow(dice.choose(self.ops[-20:]))
            case 5:
                self._say(self._who(), spoil(dice, bodies(dice, self._ids)), self._plan(), self._seq())
            case 6 | 7 | 8:
                self._say(self._operator(), bodies(dice, self._ids), self._plan(), self._seq())
            case _:
                self._say(self._who(), bodies(dice, self._ids), self._plan(), self._seq())

    def _goal(self) -> dict[str, Any]:
        return {"kind": "goal", "title": "g", "policy": policy(self.dice), "nonce": self.dice.octets(2)}

    def _rival_of_the_goal(self) -> None:
        """The operator's op in its goal's slot, with an id below the goal's: it mustn't take the plan away."""
        goal = self.dice.choose(self.goals)
        who = _person(goal.author)
        for attempt in range(64):
            body = {"kind": "steer", "act": {"act": "note", "task": goal.id, "text": f"rival {attempt}"}}
            op = self._make(who, body, goal.id, 0, goal.hlc + self.dice.below(3))
            if op is not None and op.id < goal.id:
                self._keep(op)
                return

    def _again(self) -> None:
        """Another op in a slot that is used, or a storm of them."""
        op = self.dice.choose(self.ops)
        for _ in range(self.dice.choose([1, 1, 1, 12])):
            self._say(_person(op.author), bodies(self.dice, self._ids), op.plan, op.seq)

    def _follow(self, op: Op) -> None:
        """Something that refers to an op (or a task that it makes) as it should, for once."""
        dice, who, goal = self.dice, self._who(), next((one for one in self.goals if one.id == op.plan), op)
        operator = dice.chance(30)
        if operator:
            who = _person(goal.author)
        task = op.id
        match op.body:
            case Proposal(steps=steps) if dice.chance(50):
                task = task_id(op.id, dice.below(len(steps)))
            case Proposal():
                vote = {"kind": "vote", "proposal": op.id, "approve": dice.chance(80), "marks": MARKS}
                pick = {"kind": "steer", "act": {"act": dice.choose(["pick", "veto"]), "proposal": op.id}}
                return self._say(who, pick if operator else vote, op.plan, self._seq())
            case Claim(task=of):
                after = {"kind": "claim", "task": of, "prior": op.id}
                word = dice.choose([{"kind": "result", "output": "x"}, {"kind": "release"}]) | {"claim": op.id}
                return self._say(
                    *((who, after) if dice.chance(40) else (_person(op.author), word)), op.plan, self._seq()
                )
        body = dice.choose([{"kind": "claim"}, {"kind": "claim"}, {"kind": "proposal", "steps": STEPS}]) | {
            "task": task
        }
        if operator:
            body = {"kind": "steer", "act": {"act": "retry", "task": task}}
        return self._say(who, body, op.plan, self._seq())

    def _who(self) -> Identity:
        return self.dice.choose(PEOPLE)

    def _operator(self) -> Identity:
        goal = self.dice.choose(self.goals)
        return _person(goal.author)

    def _plan(self) -> OpId:
        return self.dice.choose(self.goals).id

    def _seq(self) -> int:
        return self.dice.choose([*range(12), *range(100, 140), MAX_SEQ])

    def _ids(self, dice: Dice) -> OpId:
        return dice.choose(self.named[-12:] if dice.chance(60) else self.named)

    def _say(self, who: Identity, body: Any, plan: OpId, seq: int) -> None:
        dice = self.dice
        self.hlc += 1 + (dice.below(3) << 16) * dice.choose([1, 1, 60_000])
        hlc = dice.choose([self.hlc] * 6 + [START, self.hlc - (dice.below(100) << 16), 0, (1 << 63) - 1])
        op = self._make(who, body, plan, seq, max(0, hlc))
        if op is not None:
            self._keep(op)

    def _make(self, who: Identity, body: Any, plan: OpId, seq: int, hlc: int) -> Op | None:
        goal = isinstance(body, dict) and body.get("kind") == "goal"
        head = {"v": 1, "plan": b"" if goal else plan, "author": who.peer_id, "seq": 0 if goal else seq, "hlc": hlc}
        payload = pack(head | {"body": body})
        try:
            return open_op(msgspec.msgpack.encode((payload, who.sign(SIGNED_PREFIX + payload))))
        except InvalidOp:
            return None

    def _keep(self, op: Op) -> None:
        self.ops.append(op)
        self.named.append(op.id)
        if isinstance(op.body, Goal):
            self.goals.append(op)
        if isinstance(op.body, Proposal):
            self.named += [task_id(op.id, i) for i in range(len(op.body.steps))]


def histories(dice: Dice, inputs: int) -> None:
    while inputs > 0:
        ops = Intruder(dice).tell(min(inputs, OPS))
        inputs -= OPS
        check(dice, ops)


def check(dice: Dice, ops: list[Op]) -> None:
    """Any order, any batches and any repetition give the naive fold's picture, of the whole and of a part."""
    wanted = naive.pictures(ops)
    prints = set()
    for _ in range(2):
        replica = Replica()
        for batch in _batches(dice, dice.shuffled(ops + ops[: dice.below(5)])):
            replica.add_many(batch)
            if dice.chance(20):
                {replica.picture(plan) for plan in replica.plans}
        assert {plan: replica.picture(plan) for plan in replica.plans} == wanted
        prints.add((replica.fingerprint, replica.count, msgspec.msgpack.encode(sorted(_vector(replica)))))
    assert len(prints) == 1
    some = [op for op in ops if dice.chance(60)]
    part = Replica()
    for op in dice.shuffled(some):
        part.add(op)
    assert {plan: part.picture(plan) for plan in part.plans} == naive.pictures(some)
    _compared(part, replica)
    show(replica)


def _batches(dice: Dice, ops: list[Op]) -> list[list[Op]]:
    found: list[list[Op]] = []
    while ops:
        size = dice.choose([1, 1, 1, 3, 100])
        found.append(ops[:size])
        ops = ops[size:]
    return found


def _vector(replica: Replica) -> list[tuple[OpId, str, int]]:
    return [(plan, author, held) for plan, authors in replica.vector().items() for author, held in authors.items()]


def _compared(part: Replica, whole: Replica) -> None:
    """What a peer with a part of the set gets by its vector, and by ids, makes it whole."""
    part.add_many(whole.lacking(part.vector()))
    part.add_many(op for op in whole.ops() if part.get(op.id) is None)
    assert (part.fingerprint, part.count) == (whole.fingerprint, whole.count)
    for plan in whole.plans:
        assert part.picture(plan) == whole.picture(plan)


def show(replica: Replica) -> None:
    """All that a person may look at."""
    living = Living()
    for plan in replica.plans.values():
        picture = Picture(plan.id, str, replica.get)
        view = picture.draw(plan, plan.tasks, living, "")
        to_markdown(view)
        to_json(view).encode()
        for op in replica.ops(plan.id):
            sentence(op, plan, str, replica.get)
            task_of(op, replica.get)
