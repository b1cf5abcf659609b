"""Ops as sentences: the gossip line, a task's history, the appendix of an export."""

from __future__ import annotations

from collections.abc import Callable

from .clock import to_seconds
from .ops import (
    Act,
    Claim,
    Goal,
    Note,
    Op,
    Pause,
    PeerId,
    Pick,
    Proposal,
    Release,
    Result,
    Retry,
    SetPolicy,
    Steer,
    TaskId,
    Veto,
    Vote,
)
from .state import Draft, Plan, Task

Names = Callable[[PeerId], str]
Find = Callable[[bytes], Op | None]
"""An op by its id."""


def task_of(op: Op, find: Find) -> TaskId | None:
    """The task that an op is about; None for plan-wide ops and dangling references."""
    match op.body:
        case Goal():
            return op.id
        case Proposal(task=task) | Claim(task=task):
            return task
        case Vote(proposal=target) | Release(claim=target) | Result(claim=target):
            referred = find(target)
            return task_of(referred, find) if referred and isinstance(referred.body, Proposal | Claim) else None
        case Steer(act=Retry(task=task) | Note(task=task)):
            return task
        case Steer(act=Pick(proposal=target) | Veto(proposal=target)):
            referred = find(target)
            return task_of(referred, find) if referred and isinstance(referred.body, Proposal) else None
        case _:
            return None


def sentence(op: Op, plan: Plan, names: Names, find: Find) -> str:
    """What an op says, in one line."""
    who = names(op.author)
    task_id = task_of(op, find)
    task = plan.tasks.get(task_id) if task_id else None
    about = f"“{task.title}”" if task else "a task"
    match op.body:
        case Goal(title=title):
            return f"{who} gave the goal “{title}”"
        case Proposal(steps=steps, angle=angle, base=base):
            return f"{who} {'refined a draft' if base else 'drafted'} {quoted(angle)}{len(steps)} steps for {about}"
        case Vote(proposal=target, approve=approve, marks=marks):
            draft = find(target)
            angle = draft.body.angle if draft and isinstance(draft.body, Proposal) else ""
            verb = "approved" if approve else "rejected"
            detail = f"specific {marks.specific}, distinct {marks.distinct}, complete {marks.complete}"
            return f"{who} {verb} {quoted(angle)}for {about} ({detail})"
        case Claim(prior=prior):
            return f"{who} {'took over' if prior else 'claimed'} {about}"
        case Release(reason=reason):
            return f"{who} gave back {about}{': ' + reason if reason else ''}"
        case Result(output=output):
            return f"{who} finished {about} ({plural(len(output.split()), 'word')})"
        case Steer(act=act):
            return f"{who} {_decision(act, about, find)}"
        case _:
            return f"{who} said something that this version doesn't know"


def _decision(act: Act, about: str, find: Find) -> str:
    match act:
        case SetPolicy(policy=policy):
            return f"set the policy: quorum {policy.need} of {policy.of}"
        case Pick():
            return f"picked a draft for {about}"
        case Veto():
            return f"vetoed a draft for {about}"
        case Retry():
            return f"asked for {about} again"
        case Note(text=text):
            return f"noted on {about}: {text}"
        case Pause(on=on):
            return "paused the plan" if on else "let the plan go on"
        case _:
            return "decided something that this version doesn't know"


def plural(count: int, thing: str, things: str = "") -> str:
    """So many of a thing: '1 vote', '2 votes'; `things` where an s doesn't do."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"


def quoted(angle: str) -> str:
    """An angle as part of a sentence: '"by place" ' or ''."""
    return f'"{angle}" ' if angle else ""


def history(task: Task, plan: Plan, names: Names, find: Find) -> tuple[tuple[float, str], ...]:
    """What was said about a task, oldest first: (Unix seconds, sentence)."""
    ops: list[Op] = [] if task.parent else [plan.op]
    lines: list[tuple[float, str]] = []
    for draft in task.drafts.values():
        ops.append(draft.op)
        ops.extend(draft.votes.values())
    if task.winner and task.winner.accepted_at is not None:
        lines.append((to_seconds(task.winner.accepted_at), _acceptance(task.winner, names)))
    ops.extend(task.chain)
    ops.extend(task.notes)
    if task.result:
        ops.append(task.result)
    lines.extend((to_seconds(op.hlc), sentence(op, plan, names, find)) for op in ops)
    return tuple(sorted(lines))


def _acceptance(draft: Draft, names: Names) -> str:
    body = draft.op.body
    angle = quoted(body.angle) if isinstance(body, Proposal) else ""
    voters = ", ".join(names(peer) for peer in sorted(draft.approvals, key=lambda peer: draft.approvals[peer]))
    return f"the draft {angle}by {names(draft.op.author)} was accepted ({voters or 'picked'})"
