"""What a scorer judges next, and how it settles."""

from __future__ import annotations

import random

from swarmtui.agents.ranking import best_first, mean_mark
from swarmtui.agents.scorer import Waited, choose_settled, choose_unjudged, rounds_spent, unjudged, widen_after
from swarmtui.plan.ops import Policy, Step
from swarmtui.plan.state import State, Task

from . import making


def test_every_foreign_draft_is_judged_once() -> None:
    plan = making.plan()
    mine, other = making.draft(plan, "me"), making.draft(plan, "dec")
    assert unjudged(plan, plan.root, "me") == (other,)
    making.vote(other, "me", 30)
    assert unjudged(plan, plan.root, "me") == ()
    assert unjudged(plan, plan.root, "you") != ()
    assert mine.op.author == "me"


def test_a_vetoed_draft_and_a_decided_task_want_no_vote() -> None:
    plan = making.plan()
    draft = making.draft(plan)
    draft.vetoed = True
    assert choose_unjudged([(plan, plan.root)], "me") is None
    draft.vetoed = False
    making.accept(plan, draft)
    assert choose_unjudged([(plan, plan.root)], "me") is None


def test_a_policy_that_names_others_keeps_me_out() -> None:
    plan = making.plan(Policy(scorers=("s", "t")))
    making.draft(plan)
    assert unjudged(plan, plan.root, "me") == ()
    assert unjudged(plan, plan.root, "s") != ()


def test_tasks_without_votes_go_first_then_those_near_the_quorum() -> None:
    plan = making.plan(Policy(need=2, of=3))
    near = making.draft(plan)
    making.vote(near, "s", 80, approve=True)
    bare = Task(
        id=b"t" * 32, plan=plan.id, depth=1, parent=plan.id, proposal=None, index=0, step=Step(title="x"), live=True,
        state=State.DRAFT,
    )  # fmt: skip
    making.draft(plan, task=bare)
    pairs = [(plan, plan.root), (plan, bare)]
    first = choose_unjudged(pairs, "me")
    assert first is not None
    assert first.task is bare
    making.vote(next(iter(bare.drafts.values())), "s", 20)
    second = choose_unjudged(pairs, "me")
    assert second is not None
    assert second.task is plan.root


def test_means_are_exact_and_ties_go_to_the_lowest_id() -> None:
    plan = making.plan()
    drafts = [making.draft(plan, name) for name in "abc"]
    for draft in drafts:
        for scorer, mark in (("s", 33), ("t", 34), ("u", 35)):
            making.vote(draft, scorer, mark)
    assert mean_mark(plan.policy, drafts[0]) == 34
    expected = sorted(drafts, key=lambda draft: draft.op.id)
    for _ in range(5):
        random.Random(7).shuffle(drafts)
        assert best_first(plan.policy, drafts) == expected


def test_stuffed_votes_of_strangers_do_not_rank() -> None:
    plan = making.plan(Policy(scorers=("s",), need=1, of=1))
    one, two = making.draft(plan, "a"), making.draft(plan, "b")
    making.vote(one, "s", 70)
    making.vote(two, "s", 50)
    for stranger in ("x", "y", "z"):
        making.vote(two, stranger, 100)
    assert best_first(plan.policy, [two, one]) == [one, two]


def test_rounds_are_spent_when_all_wanted_drafts_are_judged() -> None:
    plan = making.plan(Policy(rivals=1, rounds=1, need=2, of=2))
    around = making.crowd(scorer=["s", "t"])
    first = making.draft(plan)
    second = making.draft(plan, hlc=20, base=first.op.id)
    for draft in (first, second):
        making.vote(draft, "s", 30)
    assert not rounds_spent(plan, plan.root, around)
    for draft in (first, second):
        making.vote(draft, "t", 30)
    assert rounds_spent(plan, plan.root, around)


def settled(plan: making.Plan, me: str, seconds: float) -> bytes | None:
    waited = {(plan.id, plan.id): Waited(since=0.0, spent=100.0)}
    found = choose_settled([(plan, plan.root)], me, waited, 100.0 + seconds)
    return found.draft.op.id if found else None


def test_nobody_settles_before_the_time() -> None:
    plan = making.plan()
    making.draft(plan)
    assert choose_settled([(plan, plan.root)], "me", {(plan.id, plan.id): Waited(since=0.0)}, 1e9) is None


def test_all_settle_for_one_draft_also_after_a_reject() -> None:
    plan = making.plan(Policy(need=2, of=2))
    low, high = making.draft(plan, "a"), making.draft(plan, "b")
    for scorer in ("s", "t"):
        making.vote(low, scorer, 20)
        making.vote(high, scorer, 40)
    assert settled(plan, "s", 0) == settled(plan, "t", 0) == high.op.id


def test_an_own_draft_is_passed_over_and_the_next_joins_after_a_while() -> None:
    plan = making.plan(Policy(need=2, of=2))
    mine, other = making.draft(plan, "s"), making.draft(plan, "t")
    making.vote(mine, "t", 50)
    making.vote(other, "s", 40)
    assert settled(plan, "t", 0) == mine.op.id
    assert settled(plan, "s", 0) is None
    assert settled(plan, "s", widen_after(plan.policy)) == other.op.id


def test_in_the_end_everything_is_approved() -> None:
    plan = making.plan()
    drafts = [making.draft(plan, "dec", hlc=number + 1) for number in range(5)]
    long = 10 * widen_after(plan.policy)
    for _ in drafts:
        chosen = settled(plan, "s", long)
        assert chosen is not None
        making.vote(plan.root.drafts[chosen], "s", 50, approve=True)
    assert settled(plan, "s", long) is None


def test_a_vetoed_draft_is_never_settled_for() -> None:
    plan = making.plan()
    making.draft(plan).vetoed = True
    assert settled(plan, "s", 1e6) is None
