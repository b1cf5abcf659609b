"""The texts of the detail panel's tabs, as lines of a given width."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from textual.content import Content

from swarmtui.plan.narrative import plural
from swarmtui.plan.ops import OpId
from swarmtui.plan.state import State
from swarmtui.ui.actions import Keys
from swarmtui.ui.states import APPROVED, REFUSED, ROLES, STALLED, agent_state, draft_look, look, mended, status
from swarmtui.ui.text import DIM, FAINT, age, bar, clock, column, join, line, paragraph, sides
from swarmtui.view import AgentView, DraftView, PlanView, TaskView, VoteView


class Row(NamedTuple):
    """A line and the draft that it belongs to."""

    text: Content
    group: OpId | None = None


Page = Callable[[TaskView, PlanView | None, int, float, Keys], list[Row]]
_BLANK = Row(Content(""))


def _rows(lines: list[Content], group: OpId | None = None) -> list[Row]:
    return [Row(text, group) for text in lines]


def _field(name: str, text: str, width: int, style: str = "") -> list[Row]:
    """Return a name in a column of its own and the text beside it; nothing without text."""
    if not text.strip():
        return []
    lines = paragraph(text, width, style, 10)
    lines[0] = Content.assemble((f"{name:<10}", DIM), lines[0][10:])
    return _rows(lines)


def task_page(task: TaskView, plan: PlanView | None, width: int, now: float, keys: Keys) -> list[Row]:
    """What the task is, who has it, what it waits for."""
    face = look(task)
    rows = _rows(paragraph(task.title, width, "bold"))
    words = Content.assemble((f"{face.glyph} {face.word}", face.colour))
    told = status(task, now, keys)
    if told.plain != face.word and not task.stalled:
        shorter = told.plain.removeprefix(face.word).strip(" ·")
        words = Content.assemble(words, "  ", (shorter, DIM))
    rows.append(Row(words))
    if task.stalled:
        rows += _rows(paragraph(mended(task.stalled, keys), width, STALLED.colour, 2))
    rows.append(_BLANK)
    rows += _field("about", task.detail, width)
    rows += _field("part of", " › ".join(_path(task, plan)), width, DIM)
    rows += _field("needs", task.needs if not task.branch else "", width)
    rows += _field("after", "\n".join(f"· {title}" for title in task.after), width)
    if task.state is State.CLAIMED and plan is not None:
        held = f"another executor may take over {plan.policy.lease_s} s after the claim"
        rows += _field("claim", held, width, DIM)
    rows += _field("result by", task.result_by, width)
    rows += _field("notes", "\n".join(f"· {note}" for note in task.notes), width, "$secondary")
    if task.parent is None and plan is not None:
        rows += _policy(plan, width)
    return rows


def _path(task: TaskView, plan: PlanView | None) -> list[str]:
    path: list[str] = []
    parent = task.parent
    while plan is not None and parent is not None and parent in plan.tasks and len(path) < 16:
        path.insert(0, plan.tasks[parent].title)
        parent = plan.tasks[parent].parent
    return path


def _policy(plan: PlanView, width: int) -> list[Row]:
    p = plan.policy
    rows = _field("goal by", "you" if plan.mine else plan.operator, width)
    rows += _field("quorum", f"{p.need} of {plural(p.of, 'scorer')}", width)
    rows += _field("drafts", f"{plural(p.rivals, 'rival')} a task, {plural(p.rounds, 'refinement')}", width)
    rows += _field("splits", f"{p.fan_out[0]} to {p.fan_out[1]} steps, {plural(p.max_depth, 'level')} deep", width)
    return rows


def _draft_head(draft: DraftView, plan: PlanView | None, width: int) -> Content:
    face = draft_look(draft)
    by = line(draft.author)
    if draft.angle:
        by = Content.assemble(by, ", ", line(f'"{draft.angle}"'))
    left = join((f"{face.glyph} {face.word}", face.colour), by, ("refined", DIM) if draft.refines else "")
    tally = (f"{draft.approvals}/{plan.policy.need} ✔" if plan else f"{draft.approvals} ✔", DIM)
    mark = f"{draft.mark:>3.0f}" if draft.mark is not None else ""
    right = join(bar(draft.mark) if draft.mark is not None else "", mark, tally, gap=" ")
    if left.cell_length + right.cell_length + 2 > width:
        right = join(mark, tally, gap=" ")
    return sides(left, right, width)


def drafts_page(task: TaskView, plan: PlanView | None, width: int, now: float, keys: Keys) -> list[Row]:
    """The rival drafts with their steps."""
    if not task.drafts:
        return _none(keys.fill(_why_no_drafts(task)), width)
    rows: list[Row] = []
    for draft in task.drafts:
        rows.append(Row(_draft_head(draft, plan, width), draft.id))
        rows += _rows(paragraph(draft.rationale, width, DIM, 2), draft.id) if draft.rationale else []
        for i, step in enumerate(draft.steps, 1):
            lines = paragraph(step, width, "", 5)
            lines[0] = Content.assemble((f"{i:>3}. ", FAINT), lines[0][5:])
            rows += _rows(lines, draft.id)
        rows.append(Row(Content(""), draft.id))
    return rows


def _why_no_drafts(task: TaskView) -> str:
    if task.branch or task.state is State.OPEN:
        return "No drafts yet: a decomposer drafts next. Press {add_decomposer} to add one."
    return "This task isn't split: one executor does it."


def votes_page(task: TaskView, plan: PlanView | None, width: int, now: float, keys: Keys) -> list[Row]:
    """Who voted how, with marks and critiques."""
    if not task.drafts:
        return _none(keys.fill(_why_no_drafts(task)), width)
    rows: list[Row] = []
    for draft in task.drafts:
        rows.append(Row(_draft_head(draft, plan, width), draft.id))
        if not draft.votes:
            rows.append(Row(Content.styled("  no votes yet", DIM), draft.id))
        for vote in draft.votes:
            rows += _rows(_vote(vote, width), draft.id)
        rows.append(Row(Content(""), draft.id))
    if any(draft.votes for draft in task.drafts):
        rows.append(Row(Content.styled("Marks: specific · distinct · complete", FAINT)))
    return rows


def _vote(vote: VoteView, width: int) -> list[Content]:
    face = APPROVED if vote.approve else REFUSED
    head = Content.assemble(
        "  ",
        (f"{face.glyph} {face.word:<8}", face.colour),
        "  ",
        column(vote.scorer, 10),
        (f"  {vote.specific:>3} · {vote.distinct:>3} · {vote.complete:>3}", DIM),
    )
    critique = paragraph(vote.critique, width, "", 4) if vote.critique.strip() else []
    at = clock(vote.at)
    return [sides(head, Content.styled(at if head.cell_length + len(at) + 2 <= width else "", FAINT), width), *critique]


def result_page(task: TaskView, plan: PlanView | None, width: int, now: float, keys: Keys) -> list[Row]:
    """The work itself."""
    if not task.output:
        waits = {
            State.CLAIMED: f"{task.holder or 'An executor'} works on it.",
            State.FAILED: keys.fill("It failed: press {retry_task} to try again."),
        }
        return _none(f"No result yet. {waits.get(task.state, '')}".strip(), width)
    head = join(("by", DIM), line(task.result_by), (clock(task.since) if task.since else "", DIM), gap=" ")
    return [Row(head), _BLANK, *_rows(paragraph(task.output, width))]


def history_page(task: TaskView, plan: PlanView | None, width: int, now: float, keys: Keys) -> list[Row]:
    """What happened, oldest first."""
    if not task.history:
        return _none("Nothing has happened yet.", width)
    rows: list[Row] = []
    for at, text in task.history:
        lines = paragraph(text, width, "", 10)
        lines[0] = Content.assemble((f"{clock(at)}  ", FAINT), lines[0][10:])
        rows += _rows(lines)
    return rows


def agent_page(agent: AgentView, width: int, now: float) -> list[Row]:
    """Who an agent is and what it writes just now."""
    _, colour = ROLES.get(agent.role, ("?", DIM))
    word, tone = agent_state(agent)
    rows = [Row(join(line(agent.name, "bold"), line(agent.role, colour))), _BLANK]
    since = f" for {age(now - agent.since)}" if agent.since else ""
    rows += _field("state", f"{word}{since}", width, tone)
    gone = agent.state == "gone"
    rows += _field("on", "" if gone else agent.subject, width)
    rows += _field("fault", agent.fault, width, "$error")
    rows += _field("failed", "" if gone else agent.trouble, width, "$warning")
    rows += _field("model", agent.model, width)
    rows += _field("skills", ", ".join(agent.skills), width)
    rows += _field("speed", f"{agent.tokens_per_second:.1f} tokens/s" if agent.tokens_per_second else "", width)
    rows += _field("published", plural(agent.ops, "op"), width)
    where = "in this program" if agent.local else "in another program: it can't be ended from here"
    rows += _field("lived" if gone else "lives", where, width)
    rows += _field("peer id", agent.peer, width, DIM)
    if agent.addresses:
        # With nothing before it: an address should fit in a line.
        rows += [_BLANK, Row(Content.styled("Others join with J, or with --join and:", DIM))]
        rows += [row for address in agent.addresses for row in _rows(paragraph(address, width))]
    if agent.tail.strip() and not gone:
        rows += [_BLANK, Row(Content.styled("It writes:", DIM)), *_rows(paragraph(agent.tail, width, "$secondary", 2))]
    return rows


def _none(text: str, width: int) -> list[Row]:
    return _rows(paragraph(text, width, DIM))


PAGES: tuple[Page, ...] = (task_page, drafts_page, votes_page, result_page, history_page)
