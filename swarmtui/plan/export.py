"""A plan as a document: Markdown for people, JSON for programs. Pure: made from a view, written by the caller."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from .markdown import block, inline
from .narrative import plural
from .state import State
from .views import DraftView, PlanView, TaskView

JSON_FORMAT = "swarmtui/plan/1"
"""Stands in the file; docs/export.md describes its fields."""
DEEPEST_HEADING = 6


class AgentFacts(Protocol):
    """What the document says of an agent (a view of an agent has it all)."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def ops(self) -> int: ...


def to_markdown(
    plan: PlanView, *, agents: Sequence[AgentFacts] = (), appendix: bool = True, checklist: bool = False
) -> str:
    """Return the plan as CommonMark.

    The headings are: the title, "The finished plan" if there is one, "Steps" with a heading per task (or a checklist),
    and the appendix. Nothing that people, peers or models wrote can add to them.

    Args:
        plan: the plan, finished or not.
        agents: who took part, for the appendix.
        appendix: end with how the plan was decided.
        checklist: the tasks as nested check boxes instead of headings.
    """
    root = plan.tasks[plan.root]
    out = [f"# {inline(plan.title)}", "", _status(plan), ""]
    if plan.detail.strip():
        out += [*block(plan.detail), ""]
    for stall in plan.stalled:
        out += [f"**Stalled:** {inline(stall.reason)}", ""]
    if root.output:
        out += ["## The finished plan", "", *block(root.output), ""]
    if root.children:
        out += ["## Steps", ""]
        for number, child in enumerate(root.children, 1):
            lines = _boxes(plan, child) if checklist else _headings(plan, child, str(number))
            out += [*lines, ""] if not checklist else lines
    elif not root.output:
        out += [*_remarks(root), ""]
    if appendix:
        out += ["", *_appendix(plan, agents)]
    return "\n".join(_squeezed(out)).rstrip("\n") + "\n"


def _status(plan: PlanView) -> str:
    leaves, done = plan.counts.get("leaves", 0), plan.counts.get("done", 0)
    word = "Done" if plan.done else "Paused" if plan.paused else "Stalled" if plan.stalled else "Unfinished"
    return (
        f"*{word}: {done} of {leaves} tasks have a result. Begun {_time(plan.started)} by {inline(plan.operator)}; "
        f"quorum {plan.policy.need} of {plan.policy.of}.*"
    )


def _headings(plan: PlanView, task_id: bytes, number: str) -> Iterator[str]:
    """The task and what is below it, as headings as deep as Markdown has them."""
    task = plan.tasks[task_id]
    level = min(task.depth + 2, DEEPEST_HEADING)
    yield from (f"{'#' * level} {number} {inline(task.title)}", "", *_remarks(task), "")
    if task.output:
        yield from (*block(task.output), "")
    for i, child in enumerate(task.children, 1):
        yield from _headings(plan, child, f"{number}.{i}")


def _boxes(plan: PlanView, task_id: bytes, indent: int = 0) -> Iterator[str]:
    task = plan.tasks[task_id]
    yield f"{' ' * indent}- [{'x' if task.state is State.DONE else ' '}] {inline(task.title)}"
    inner = " " * (indent + 2)
    below = [*_remarks(task), "", *(block(task.output) if task.output else [])]
    if any(below):
        yield from ("", *(inner + line if line else "" for line in below), "")
    for child in task.children:
        yield from _boxes(plan, child, indent + 2)


def _remarks(task: TaskView) -> list[str]:
    """What has to be said of a task besides its result, a paragraph each."""
    said: list[str] = []
    if task.detail.strip():  # quoted, so that it isn't taken for the result
        said += [*(f"> {line}".rstrip() for line in block(task.detail)), ""]
    if task.after:
        said += [f"*After: {'; '.join(inline(title) for title in task.after)}.*", ""]
    for note in task.notes:
        said += ["**Note:**", "", *block(note), ""]
    if task.stalled:
        said += [f"**Stalled:** {inline(task.stalled.reason)}", ""]
    elif task.state is not State.DONE and not (task.branch and task.children):
        said += [f"**Open:** {_OPEN.get(task.state, task.state.value)}.", ""]
    return said


_OPEN = {
    State.OPEN: "nobody has drafted its steps yet",
    State.DRAFT: "its drafts are being voted on",
    State.WAITING: "it waits for the results of other tasks",
    State.READY: "nobody has claimed it yet",
    State.CLAIMED: "it was claimed, and there is no result yet",
    State.FAILED: "it was given back too often",
}


def _appendix(plan: PlanView, agents: Sequence[AgentFacts]) -> Iterator[str]:
    yield from ("## How this plan was decided", "")
    for task in _walk(plan):
        if task.drafts:
            yield from (f"**Drafts for “{inline(task.title)}”**", "")
            for draft in task.drafts:
                yield from _draft(draft)
            yield ""
    lines = sorted({line for task in _walk(plan) for line in task.history})
    if lines:
        yield from ("**Who did what, and when**", "")
        yield from (f"- {_time(at)}: {inline(sentence)}" for at, sentence in lines)
        yield ""
    if agents:
        yield from ("**Agents**", "")
        for agent in agents:
            model = f", {inline(agent.model)}" if agent.model else ""
            yield f"- {inline(agent.name)}: {inline(agent.role)}{model}, {plural(agent.ops, 'op')}"
        yield ""


def _draft(draft: DraftView) -> Iterator[str]:
    verdict = "vetoed" if draft.vetoed else "accepted" if draft.accepted else "not accepted"
    mark = "no marks" if draft.mark is None else f"mark {draft.mark:.0f}"
    angle = f"“{inline(draft.angle)}” " if draft.angle.strip() else ""
    refined = ", refined from another" if draft.refines else ""
    yield f"- {angle}by {inline(draft.author)}{refined}: **{verdict}**, {mark}, {plural(draft.approvals, 'approval')}"
    if draft.rationale.strip():
        yield f"  - Why: {inline(draft.rationale)}"
    yield f"  - Steps: {'; '.join(inline(step) for step in draft.steps)}"
    for vote in draft.votes:
        verb = "approved" if vote.approve else "rejected"
        marks = f"specific {vote.specific}, distinct {vote.distinct}, complete {vote.complete}"
        critique = f": {inline(vote.critique)}" if vote.critique.strip() else ""
        yield f"  - {inline(vote.scorer)} {verb} at {_time(vote.at)} ({marks}){critique}"


def _walk(plan: PlanView) -> Iterator[TaskView]:
    """Every live task, each before its children."""
    stack = [plan.root]
    while stack:
        task = plan.tasks[stack.pop()]
        yield task
        stack.extend(reversed(task.children))


def _time(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):  # an author may state any time
        return "at no real time"


def _squeezed(lines: Iterable[str]) -> Iterator[str]:
    """Leave out blank lines that follow a blank line, outside fenced code."""
    before, fence = "", ""
    for line in lines:
        stripped = line.lstrip()
        if stripped.startswith("```"):
            ticks = stripped[: len(stripped) - len(stripped.lstrip("`"))]
            fence = "" if fence == ticks and stripped == ticks else fence or ticks
        if line or before or fence:
            yield line
        before = line


def to_json(plan: PlanView, agents: Sequence[AgentFacts] = ()) -> str:
    """Return the plan as JSON (docs/export.md describes it): the same facts as the Markdown, ids in hex."""
    facts: dict[str, Any] = {"format": JSON_FORMAT, **_plain(plan)}
    facts |= {
        "stalled": [stall.reason for stall in plan.stalled],
        "tasks": [_plain_task(task) for task in _walk(plan)],
        "agents": [{"name": a.name, "role": a.role, "model": a.model, "ops": a.ops} for a in agents],
    }
    text = json.dumps(facts, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"  # a lone surrogate would make it unwritable


def _plain_task(task: TaskView) -> dict[str, Any]:
    return _plain(task) | {
        "stalled": task.stalled.reason if task.stalled else "",
        "history": [{"at": at, "text": text} for at, text in task.history],
    }


def _plain(view: PlanView | TaskView) -> dict[str, Any]:
    fields = {name: getattr(view, name) for name in view.__struct_fields__ if name != "tasks"}
    plain: dict[str, Any] = msgspec.to_builtins(_hexed(fields))
    return plain


def _hexed(value: Any) -> Any:
    """Ids as hex text, deep inside."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: _hexed(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_hexed(inner) for inner in value]
    if isinstance(value, msgspec.Struct):
        return {name: _hexed(getattr(value, name)) for name in value.__struct_fields__}
    return value
