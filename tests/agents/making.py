"""Plans made by hand, for what agents choose from: no signatures, no rules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from swarmtui.agents.crowd import Busy, Crowd
from swarmtui.plan.ops import Body, Claim, Goal, Marks, Op, Policy, Proposal, Result, Step, Vote
from swarmtui.plan.state import Draft, Plan, State, Task

MINUTE = 60_000 << 16


def op(body: Body, author: str = "ann", hlc: int = 1, name: str = "") -> Op:
    ident = hashlib.sha256(f"{name}{author}{hlc}{body}".encode()).digest()
    return Op(id=ident, plan=b"p" * 32, author=author, seq=0, hlc=hlc, body=body, payload=b"", signature=b"")


def plan(policy: Policy | None = None, title: str = "Open a bakery") -> Plan:
    goal = Goal(title=title, policy=policy or Policy())
    said = op(goal, "you")
    root = Task(
        id=said.id, plan=said.id, depth=0, parent=None, proposal=None, index=0, step=Step(title=title), live=True,
        state=State.OPEN,
    )  # fmt: skip
    return Plan(op=said, goal=goal, policy=goal.policy, tasks={root.id: root})


def draft(
    on: Plan, author: str = "dec", *, task: Task | None = None, hlc: int = 10, base: bytes = b"", angle: str = "",
    titles: Iterable[str] = ("Rent a shop", "Buy an oven"),
) -> Draft:  # fmt: skip
    task = task or on.root
    steps = tuple(Step(title=title) for title in titles)
    said = op(Proposal(task=task.id, steps=steps, base=base, angle=angle), author, hlc)
    made = Draft(op=said, steps=steps)
    task.drafts[said.id] = made
    task.state = State.DRAFT
    return made


def vote(on: Draft, scorer: str, mark: int, approve: bool = False, critique: str = "") -> None:
    marks = Marks(specific=mark, distinct=mark, complete=mark)
    said = op(Vote(proposal=on.op.id, approve=approve, marks=marks, critique=critique), scorer, 50)
    on.votes[scorer] = said
    if approve:
        on.approvals[scorer] = said.hlc


def accept(on: Plan, winner: Draft, task: Task | None = None) -> list[Task]:
    """Make a draft the winner; its steps become ready leaves."""
    task = task or on.root
    task.winner, task.state = winner, State.ACCEPTED
    children = []
    for index, step in enumerate(winner.steps):
        ident = hashlib.sha256(winner.op.id + bytes([index])).digest()
        children.append(
            Task(
                id=ident,
                plan=on.id,
                depth=task.depth + 1,
                parent=task.id,
                proposal=winner.op.id,
                index=index,
                step=step,
                live=True,
                leaf=True,
                state=State.READY,
            )
        )
        on.tasks[ident] = children[-1]
    task.children = tuple(child.id for child in children)
    return children


def claim(task: Task, author: str, hlc: int = 100, prior: bytes = b"") -> Op:
    said = op(Claim(task=task.id, prior=prior), author, hlc)
    task.chain = (*task.chain, said)
    task.holder, task.state = said, State.CLAIMED
    return said


def result(task: Task, output: str, author: str = "exe") -> None:
    task.result = op(Result(claim=claim(task, author).id, output=output), author, 200)
    task.holder, task.state = None, State.DONE


def crowd(busy: dict[str, Busy] | None = None, **roles: Iterable[str]) -> Crowd:
    """`crowd(scorer=["a", "b"])`"""
    return Crowd({peer: role for role, peers in roles.items() for peer in peers}, busy or {})
