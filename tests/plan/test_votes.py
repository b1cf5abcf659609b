"""Approvals, acceptance, the operator's picks and vetoes."""

from __future__ import annotations

from swarmtui.plan.ops import MAX_PROPOSALS_PER_AUTHOR, Pick, Policy, SetPolicy, Step, Veto, Vote
from swarmtui.plan.state import State

from .tale import ADA, BOB, CLEO, DORA, EVA, MARKS, MS, OPERATOR, START, Tale, children


def test_a_draft_is_accepted_when_the_quorum_is_reached() -> None:
    tale = Tale(need=2)
    assert tale.root.state is State.OPEN
    draft = tale.draft()
    assert tale.root.state is State.DRAFT
    tale.approve(draft, BOB)
    assert tale.root.winner is None
    tale.approve(draft, CLEO)
    assert tale.root.state is State.ACCEPTED
    assert tale.root.winner is tale.root.drafts[draft.id]
    assert tale.root.winner.accepted_at == tale.ops[-1].hlc
    assert list(tale.root.children) == children(draft)


def test_a_scorer_counts_once_at_its_first_approval() -> None:
    tale = Tale(need=2)
    draft = tale.draft(at=2)
    tale.approve(draft, BOB, at=10)
    tale.approve(draft, BOB, at=20)
    assert tale.root.drafts[draft.id].approvals == {BOB.peer_id: START + 10 * MS}
    tale.approve(draft, BOB, at=5)
    assert tale.root.drafts[draft.id].approvals == {BOB.peer_id: START + 5 * MS}
    assert tale.root.state is State.DRAFT


def test_a_reject_then_an_approval_is_fine_and_a_later_reject_takes_nothing_back() -> None:
    tale = Tale(need=1)
    draft = tale.draft()
    tale.reject(draft, BOB)
    assert tale.root.state is State.DRAFT
    tale.approve(draft, BOB)
    assert tale.root.state is State.ACCEPTED
    later = tale.reject(draft, BOB)
    assert tale.root.state is State.ACCEPTED
    assert tale.root.drafts[draft.id].votes == {BOB.peer_id: later}


def test_a_vote_on_ones_own_draft_means_nothing() -> None:
    tale = Tale(need=1)
    draft = tale.draft(who=ADA)
    tale.approve(draft, ADA)
    assert tale.root.state is State.DRAFT
    assert tale.root.drafts[draft.id].votes == {}


def test_only_listed_scorers_count_and_show() -> None:
    tale = Tale(need=1, of=1, scorers=(BOB.peer_id,))
    draft = tale.draft()
    tale.approve(draft, CLEO)
    assert tale.root.state is State.DRAFT
    assert tale.root.drafts[draft.id].votes == {}
    tale.approve(draft, BOB)
    assert tale.root.state is State.ACCEPTED


def test_opening_the_list_counts_the_votes_that_there_are() -> None:
    tale = Tale(need=1, of=1, scorers=(BOB.peer_id,))
    draft = tale.draft()
    tale.approve(draft, CLEO)
    opening = tale.steer(SetPolicy(Policy(need=1, of=1)))
    assert tale.root.state is State.ACCEPTED
    assert tale.root.winner is not None
    assert tale.root.winner.accepted_at == opening.hlc
    assert set(tale.root.drafts[draft.id].approvals) == {CLEO.peer_id}


def test_the_earliest_accepted_wins_whatever_arrives_first() -> None:
    tale = Tale(need=1)
    late, early = tale.draft(who=ADA), tale.draft(who=DORA)
    tale.approve(late, BOB, at=20)
    assert tale.root.winner is tale.root.drafts[late.id]
    tale.approve(early, CLEO, at=10)
    assert tale.root.winner is tale.root.drafts[early.id]
    assert all(tale.state(task) is State.SUPERSEDED for task in children(late))
    assert all(tale.state(task) is State.READY for task in children(early))


def test_lowering_the_quorum_accepts_what_has_the_votes_and_raising_it_unaccepts_nothing() -> None:
    tale = Tale(need=3)
    draft = tale.draft()
    tale.approve(draft, BOB, CLEO)
    assert tale.root.state is State.DRAFT
    lowered = tale.steer(SetPolicy(Policy(need=2)))
    assert tale.root.winner is not None
    assert tale.root.winner.accepted_at == lowered.hlc
    tale.steer(SetPolicy(Policy(need=3)))
    assert tale.root.state is State.ACCEPTED
    other = tale.draft()
    tale.approve(other, BOB, CLEO)
    assert tale.root.drafts[other.id].accepted_at is None


def test_the_policy_in_force_decides_not_the_order_of_arrival() -> None:
    tale = Tale(need=1)
    draft = tale.draft(at=2)
    tale.approve(draft, BOB, at=30)
    tale.steer(SetPolicy(Policy(need=2)), at=20)
    assert tale.root.state is State.DRAFT
    tale.approve(draft, CLEO, at=10)
    assert tale.root.winner is not None
    assert tale.root.winner.accepted_at == START + 10 * MS


def test_the_operator_s_pick_wins_at_once_and_the_latest_pick_counts() -> None:
    tale = Tale()
    one, other = tale.draft(who=ADA), tale.draft(who=DORA)
    pick = tale.steer(Pick(one.id))
    assert tale.root.winner is tale.root.drafts[one.id]
    assert tale.root.winner.accepted_at == pick.hlc
    tale.steer(Pick(other.id))
    assert tale.root.winner is tale.root.drafts[other.id]


def test_a_second_pick_of_the_same_draft_undoes_no_work() -> None:
    tale = Tale()
    draft = tale.draft()
    tale.steer(Pick(draft.id))
    task = children(draft)[0]
    tale.do(task)
    tale.steer(Pick(draft.id))
    assert tale.state(task) is State.DONE


def test_picking_back_brings_the_work_back() -> None:
    tale = Tale()
    one, other = tale.draft(who=ADA), tale.draft(who=DORA)
    tale.steer(Pick(one.id))
    task = children(one)[0]
    tale.do(task)
    tale.steer(Pick(other.id))
    assert tale.state(task) is State.SUPERSEDED
    tale.steer(Pick(one.id))
    assert tale.state(task) is State.DONE


def test_a_veto_rules_out_and_the_operator_s_latest_word_counts() -> None:
    tale = Tale(need=1)
    draft = tale.draft()
    tale.approve(draft, BOB)
    tale.steer(Veto(draft.id))
    assert tale.root.drafts[draft.id].vetoed
    assert tale.root.winner is None
    assert tale.root.state is State.OPEN, "a draft is wanted again"
    tale.steer(Pick(draft.id))
    assert tale.root.state is State.ACCEPTED


def test_steering_counts_only_from_the_goal_s_author() -> None:
    tale = Tale()
    draft = tale.draft()
    word = tale.steer(Pick(draft.id), who=EVA)
    assert tale.root.state is State.DRAFT
    assert not tale.means_something(word)


def test_of_an_author_s_drafts_for_a_task_eight_count_those_with_the_lowest_seq() -> None:
    tale = Tale()
    drafts = [tale.draft(who=ADA, seq=seq) for seq in reversed(range(10))]
    counting = [draft.seq for draft in drafts if tale.root.drafts[draft.id].counts]
    assert counting == list(reversed(range(MAX_PROPOSALS_PER_AUTHOR)))
    tale.draft(who=DORA)
    assert all(draft.counts for draft in tale.root.drafts.values() if draft.op.author == DORA.peer_id)


def test_vetoed_drafts_use_up_no_place() -> None:
    """Else a lone decomposer whose eight drafts were vetoed could never go on."""
    tale = Tale()
    for _ in range(MAX_PROPOSALS_PER_AUTHOR):
        tale.steer(Veto(tale.draft().id))
    assert tale.root.drafts[tale.draft().id].counts


def test_filling_in_lower_numbers_later_doesn_t_undo_an_accepted_draft() -> None:
    tale = Tale(need=2)
    draft = tale.draft(who=ADA, seq=100)
    tale.approve(draft)
    for seq in range(MAX_PROPOSALS_PER_AUTHOR):
        tale.draft(who=ADA, seq=seq)
    assert not tale.root.drafts[draft.id].counts
    assert tale.root.winner is tale.root.drafts[draft.id]


def test_an_atomic_task_isn_t_split() -> None:
    tale = Tale()
    task = tale.split()[0]
    draft = tale.draft(task)
    tale.approve(draft)
    assert tale.task(task).winner is None
    assert tale.state(task) is State.READY


def test_no_quorum_splits_a_task_at_max_depth_but_one_split_before_stays_split() -> None:
    tale = Tale(max_depth=2)
    one, other = tale.split(None, Step("one"), Step("other"))
    tale.split(one)
    tale.steer(SetPolicy(Policy(need=2, max_depth=1, synthesis="none")))
    assert tale.state(one) is State.ACCEPTED
    assert tale.state(other) is State.READY, "now a leaf"
    draft = tale.draft(other)
    tale.approve(draft)
    assert tale.task(other).winner is None


def test_votes_back_dated_before_their_draft_mean_nothing() -> None:
    tale = Tale(need=1)
    draft = tale.draft(at=10)
    vote = tale.say(BOB, Vote(draft.id, True, MARKS), at=10)
    assert not tale.means_something(vote)
    assert tale.root.state is State.DRAFT
    assert tale.replica.get(vote.id) is vote, "kept and passed on all the same"


def test_the_operator_may_vote_like_anyone() -> None:
    tale = Tale(need=1)
    draft = tale.draft()
    tale.approve(draft, OPERATOR)
    assert tale.root.state is State.ACCEPTED
