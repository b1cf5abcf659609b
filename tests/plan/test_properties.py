"""What holds of every history, and that the histories reach the states that matter."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import event, given
from hypothesis import strategies as st

from swarmtui.plan.ops import Claim, Goal, Op, Pick, Result, Retry, SetPolicy, Steer, Unknown, Veto
from swarmtui.plan.replica import Replica
from swarmtui.plan.state import Plan, State, Task

from .histories import SECOND, histories, told


def tasks(replica: Replica) -> list[tuple[Plan, Task]]:
    return [(plan, task) for plan in replica.plans.values() for task in plan.tasks.values()]


def folded(ops: list[Op]) -> Replica:
    replica = Replica()
    replica.add_many(ops)
    return replica


@given(histories)
def test_one_winner_one_holder_one_result(ops: list[Op]) -> None:
    for plan, task in tasks(folded(ops)):
        if task.winner is not None:
            assert task.winner.op.id in task.drafts
            assert task.winner.accepted_at is not None
            assert not task.winner.vetoed
            assert not task.leaf
            live = {child for child in task.children if plan.tasks[child].live}
            assert live == (set(task.children) if task.live else set())
        if task.proposal is not None and task.live:
            parent = plan.tasks[task.parent or b""]
            assert parent.live
            assert parent.winner is not None
            assert parent.winner.op.id == task.proposal
        if task.holder is not None:
            assert task.holder is task.chain[-1]
        if task.result is not None:
            assert task.state is State.DONE
        assert len({claim.id for claim in task.chain}) == len(task.chain)


@given(histories)
def test_a_chain_s_links_take_over_what_was_released_or_lapsed(ops: list[Op]) -> None:
    replica = folded(ops)
    for plan, task in tasks(replica):
        for link, successor in zip(task.chain, task.chain[1:], strict=False):
            assert isinstance(successor.body, Claim)
            assert successor.body.prior == link.id
            released = [
                op
                for op in replica.ops()
                if getattr(op.body, "claim", None) == link.id and not isinstance(op.body, Result)
            ]
            lapsed = successor.hlc >= link.hlc + plan.policy.lease_s * SECOND
            assert lapsed or any(successor.hlc > op.hlc for op in released)


@given(histories)
def test_words_and_facts_agree(ops: list[Op]) -> None:
    for plan, task in tasks(folded(ops)):
        children = [plan.tasks[child] for child in task.children]
        match task.state:
            case State.SUPERSEDED:
                assert not task.live
                assert (task.result, task.holder, task.chain) == (None, None, ())
            case State.OPEN:
                assert task.winner is None
                assert all(draft.vetoed for draft in task.drafts.values())
            case State.DRAFT:
                assert task.winner is None
                assert not task.leaf
            case State.ACCEPTED:
                assert task.winner is not None
                assert not all(child.state is State.DONE for child in children)
            case State.WAITING:
                assert task.leaf
                waits = [plan.tasks[before].state for before in all_after(plan, task)]
                assert not all(state is State.DONE for state in waits)
            case State.CLAIMED:
                assert task.holder is not None
            case State.FAILED:
                assert task.releases >= plan.policy.attempts
                assert task.holder is None
            case State.DONE:
                merged_or_leaf = task.result is not None
                assert merged_or_leaf or all(child.state is State.DONE for child in children)
            case State.READY:
                assert task.holder is None
                assert task.leaf or all(child.state is State.DONE for child in children)
        assert task.live == (task.state is not State.SUPERSEDED)


def all_after(plan: Plan, task: Task) -> list[bytes]:
    above = all_after(plan, plan.tasks[task.parent]) if task.parent is not None else []
    return [*task.after, *above]


@given(histories, st.integers(0, 2**32))
def test_approvals_only_grow_and_acceptance_only_gets_earlier(ops: list[Op], seed: int) -> None:
    """As long as no policy is changed, in any order of arrival, whoever equivocates."""
    ops = [op for op in ops if not (isinstance(op.body, Steer) and isinstance(op.body.act, SetPolicy))]
    random.Random(seed).shuffle(ops)
    replica = Replica()
    approvals: dict[tuple[bytes, str], int] = {}
    accepted: dict[bytes, int] = {}
    for op in ops:
        replica.add(op)
        for _, task in tasks(replica):
            for draft in task.drafts.values():
                for scorer, at in draft.approvals.items():
                    assert at <= approvals.get((draft.op.id, scorer), at)
                    approvals[draft.op.id, scorer] = at
                before = accepted.get(draft.op.id)
                if before is not None:
                    assert draft.accepted_at is not None
                    assert draft.accepted_at <= before
                if draft.accepted_at is not None:
                    accepted[draft.op.id] = draft.accepted_at


@given(histories, st.integers(0, 2**32))
def test_done_stays_done_while_its_split_wins(ops: list[Op], seed: int) -> None:
    """But for a retry, a changed policy or a veto, whoever equivocates; a task whose draft loses isn't live any more.

    What it used may have been superseded, too: then the branch above it has another winner, and the task isn't live.
    """
    ops = [
        op for op in ops if not (isinstance(op.body, Steer) and isinstance(op.body.act, (Retry, SetPolicy, Veto, Pick)))
    ]
    random.Random(seed).shuffle(ops)
    replica = Replica()
    done: dict[tuple[bytes, bytes], dict[bytes, bytes | None]] = {}
    for op in ops:
        replica.add(op)
        for plan, task in tasks(replica):
            key = (plan.id, task.id)
            if key in done and winners(plan) == done[key]:
                assert task.state is State.DONE
            elif task.state is State.DONE and task.leaf:
                done[key] = winners(plan)


def winners(plan: Plan) -> dict[bytes, bytes | None]:
    return {task.id: task.winner and task.winner.op.id for task in plan.tasks.values() if task.winner}


def seen(ops: list[Op]) -> set[str]:
    """What happens in a history."""
    replica, found, winner, done = Replica(), set(), {}, set()
    for op in ops:
        changes = replica.add(op)
        if isinstance(op.body, Unknown):
            found.add("unknown")
        for plan_id, task_id in changes.tasks:
            plan = replica.plans[plan_id]
            task = plan.tasks[task_id]
            found.add(task.state.value)
            found |= {f"chain of {min(len(task.chain), 3)}", f"depth {task.depth if task.live else 0}"}
            found |= {"released"} if task.releases else set()
            found |= {"merged"} if task.result and task.winner else set()
            found |= {"over the limit"} if any(not draft.counts for draft in task.drafts.values()) else set()
            found |= {"vetoed"} if any(draft.vetoed for draft in task.drafts.values()) else set()
            found |= {"note"} if task.notes else set()
            if task.winner is not None and winner.setdefault(task_id, task.winner) is not task.winner:
                found.add("flip")
            if task_id in done and task.live and task.state is not State.DONE:
                found.add("undone")
            if task.state is State.DONE:
                done.add(task_id)
            shape = task.step.atomic or task.depth >= plan.policy.max_depth
            found |= {"stays a leaf"} if task.leaf and not shape else set()
        for plan in replica.plans.values():
            found |= {"plan done"} if plan.done else set()
            found |= {"paused"} if plan.paused else set()
            found |= {"faulty"} if plan.faulty else set()
            found |= {"policy changed"} if plan.policy != plan.goal.policy else set()
    found |= {"several plans"} if sum(isinstance(op.body, Goal) for op in ops) > 1 else set()
    return found


@given(histories)
def test_what_the_histories_that_hypothesis_finds_reach(ops: list[Op]) -> None:
    for what in seen(ops):
        event(what)


def test_the_histories_reach_the_states_that_matter() -> None:
    found: Counter[str] = Counter()
    for seed in range(150):
        rng = random.Random(seed)
        found.update(seen(told(rng.randbytes(rng.randint(100, 700)))))
    wanted = {state.value for state in State} | {
        *("chain of 2", "chain of 3", "depth 2", "depth 3", "released", "merged", "flip", "undone"),
        *("over the limit", "vetoed", "note", "stays a leaf", "plan done", "paused", "faulty"),
        *("policy changed", "several plans", "unknown"),
    }
    rare = {what: found[what] for what in wanted if found[what] < 5}
    assert not rare
