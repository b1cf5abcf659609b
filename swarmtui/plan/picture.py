"""A plan as people see it: builds the views, keeping the objects of what hasn't changed."""

from __future__ import annotations

from collections.abc import Iterable

from .clock import to_seconds
from .narrative import Find, Names, history, plural
from .ops import Note, OpId, PeerId, Proposal, Result, TaskId, Vote
from .progress import Living, counts, live_tasks, plan_stalls, stall
from .state import Draft, Plan, State, Task
from .views import DraftView, PlanView, TaskView, VoteView


class Picture:
    """The pictures of one plan, over time.

    A task's view is made anew only when the task, or what's below it, was reported as changed; if it comes out equal,
    the old object stays, so that a screen can compare by identity.
    """

    def __init__(self, plan_id: OpId, names: Names, find: Find) -> None:
        self.plan_id = plan_id
        self._names = names
        self._find = find
        self._tasks: dict[TaskId, TaskView] = {}
        self._living: Living | None = None

    def draw(self, plan: Plan, changed: Iterable[TaskId], living: Living, me: PeerId) -> PlanView:
        """The plan now.

        Args:
            plan: as the replica holds it.
            changed: the tasks reported as changed since the last call.
            living: who can be heard now; a difference redraws every task (reasons of stalls depend on it).
            me: the peer whose steering counts as one's own.
        """
        stale = self._stale(plan, changed) if living == self._living else None
        self._living = living
        views: dict[TaskId, TaskView] = {}
        for task in live_tasks(plan):
            old = self._tasks.get(task.id)
            if old is None or stale is None or task.id in stale:
                new = self._task(plan, task, living)
                views[task.id] = old if old is not None and new == old else new
            else:
                views[task.id] = old
        self._tasks = views
        return PlanView(
            id=plan.id,
            title=plan.goal.title,
            detail=plan.goal.detail,
            operator=self._names(plan.operator),
            mine=plan.operator == me,
            policy=plan.policy,
            paused=plan.paused,
            done=plan.done,
            stalled=plan_stalls(plan, living),
            counts=counts(plan),
            root=plan.id,
            tasks=views,
            started=to_seconds(plan.op.hlc),
        )

    @staticmethod
    def _stale(plan: Plan, changed: Iterable[TaskId]) -> set[TaskId]:
        """The changed tasks and their ancestors, whose counts they are part of."""
        stale: set[TaskId] = set()
        for task_id in changed:
            at: TaskId | None = task_id
            while at is not None and at not in stale:
                stale.add(at)
                task = plan.tasks.get(at)
                at = task.parent if task else None
        return stale

    def _task(self, plan: Plan, task: Task, living: Living) -> TaskView:
        stalled = stall(plan, task, living)
        result = task.result
        return TaskView(
            id=task.id,
            parent=task.parent,
            depth=task.depth,
            title=task.title,
            detail=task.step.detail,
            state=task.state,
            branch=not task.leaf,
            children=task.children,
            stalled=stalled,
            status=f"stalled: {stalled.reason}" if stalled else self._status(plan, task, living),
            holder=self._names(task.holder.author) if task.holder else "",
            since=_since(task),
            output=result.body.output if result and isinstance(result.body, Result) else "",
            result_by=self._names(result.author) if result else "",
            needs=task.step.needs,
            after=tuple(plan.tasks[other].title for other in task.after if other in plan.tasks),
            notes=tuple(op.body.act.text for op in task.notes if isinstance(op.body.act, Note)),  # type: ignore[attr-defined]
            drafts=tuple(self._draft(task, draft) for draft in _in_order(task)),
            history=history(task, plan, self._names, self._find),
        )

    def _status(self, plan: Plan, task: Task, living: Living) -> str:
        match task.state:
            case State.OPEN:
                return "no draft yet"
            case State.DRAFT:
                best = max((len(draft.approvals) for draft in task.drafts.values() if not draft.vetoed), default=0)
                return f"{plural(len(task.drafts), 'draft')} · {best} of {plan.policy.need} votes"
            case State.CLAIMED if task.holder:
                name = self._names(task.holder.author)
                return name if task.holder.author in living.executors else f"{name} is silent"
            case State.WAITING:
                waits = [plan.tasks[other].title for other in task.after if plan.tasks[other].state is not State.DONE]
                return f"waits for “{waits[0]}”" if waits else "waits"
            case State.ACCEPTED | State.DONE if task.children:
                done, leaves = _leaves(plan, task)
                return f"{'done ' if task.state is State.DONE else ''}{done}/{leaves}"
            case _:
                return str(task.state.value)

    def _draft(self, task: Task, draft: Draft) -> DraftView:
        body = draft.op.body
        assert isinstance(body, Proposal)
        votes = tuple(self._votes(draft))
        marks = [(vote.specific + vote.distinct + vote.complete) / 3 for vote in votes]
        return DraftView(
            id=draft.op.id,
            author=self._names(draft.op.author),
            angle=body.angle,
            rationale=body.rationale,
            steps=tuple(step.title for step in draft.steps),
            refines=bool(body.base),
            mark=sum(marks) / len(marks) if marks else None,
            approvals=len(draft.approvals),
            votes=votes,
            accepted=draft is task.winner,
            vetoed=draft.vetoed,
            at=to_seconds(draft.op.hlc),
        )

    def _votes(self, draft: Draft) -> Iterable[VoteView]:
        for op in sorted(draft.votes.values(), key=lambda op: op.order):
            if isinstance(op.body, Vote):
                marks = op.body.marks
                yield VoteView(
                    scorer=self._names(op.author),
                    approve=op.body.approve,
                    specific=marks.specific,
                    distinct=marks.distinct,
                    complete=marks.complete,
                    critique=op.body.critique,
                    at=to_seconds(op.hlc),
                )


def _in_order(task: Task) -> list[Draft]:
    return sorted(task.drafts.values(), key=lambda draft: draft.op.order)


def _since(task: Task) -> float:
    if task.result:
        return to_seconds(task.result.hlc)
    if task.holder:
        return to_seconds(task.holder.hlc)
    if task.winner and task.winner.accepted_at is not None:
        return to_seconds(task.winner.accepted_at)
    return 0.0


def _leaves(plan: Plan, branch: Task) -> tuple[int, int]:
    """(done, all) leaves below a branch."""
    done = leaves = 0
    stack = list(branch.children)
    while stack:
        task = plan.tasks[stack.pop()]
        stack.extend(task.children)
        leaves += task.leaf
        done += task.leaf and task.state is State.DONE
    return done, leaves
