"""Approvals, acceptance, the operator's picks and vetoes."""

from __future__ import annotations

from swarmtui.plan.ops import MAX_PROPOSALS_PER_AUTHOR, Pick, Policy, SetPolicy, Step, Veto, Vote
from swarmtui.plan.state import State

from .scene import ADA, BOB, CLEO, DORA, EVA, MARKS, MS, OPERATOR, START, Scene, children


def test_a_draft_is_accepted_when_the_quorum_is_reached() -> None:
    scene = Scene(need=2)
    assert scene.root.state is State.OPEN
    draft = scene.draft()
    assert scene.root.state is State.DRAFT
    scene.approve(draft, BOB)
    assert scene.root.winner is None
    scene.approve(draft, CLEO)
    assert scene.root.state is State.ACCEPTED
    assert scene.root.winner is scene.root.drafts[draft.id]
    assert scene.root.winner.accepted_at == scene.ops[-1].hlc
    assert list(scene.root.children) == children(draft)


def test_a_scorer_counts_once_at_its_first_approval() -> None:
    scene = Scene(need=2)
    draft = scene.draft(at=2)
    scene.approve(draft, BOB, at=10)
    scene.approve(draft, BOB, at=20)
    assert scene.root.drafts[draft.id].approvals == {BOB.peer_id: START + 10 * MS}
    scene.approve(draft, BOB, at=5)
    assert scene.root.drafts[draft.id].approvals == {BOB.peer_id: START + 5 * MS}
    assert scene.root.state is State.DRAFT


def test_a_reject_then_an_approval_is_fine_and_a_later_reject_takes_nothing_back() -> None:
    scene = Scene(need=1)
    draft = scene.draft()
    scene.reject(draft, BOB)
    assert scene.root.state is State.DRAFT
    scene.approve(draft, BOB)
    assert scene.root.state is State.ACCEPTED
    later = scene.reject(draft, BOB)
    assert scene.root.state is State.ACCEPTED
    assert scene.root.drafts[draft.id].votes == {BOB.peer_id: later}


def test_a_vote_on_ones_own_draft_means_nothing() -> None:
    scene = Scene(need=1)
    draft = scene.draft(who=ADA)
    scene.approve(draft, ADA)
    assert scene.root.state is State.DRAFT
    assert scene.root.drafts[draft.id].votes == {}


def test_only_listed_scorers_count_and_show() -> None:
    scene = Scene(need=1, of=1, scorers=(BOB.peer_id,))
    draft = scene.draft()
    scene.approve(draft, CLEO)
    assert scene.root.state is State.DRAFT
    assert scene.root.drafts[draft.id].votes == {}
    scene.approve(draft, BOB)
    assert scene.root.state is State.ACCEPTED


def test_opening_the_list_counts_the_votes_that_there_are() -> None:
    scene = Scene(need=1, of=1, scorers=(BOB.peer_id,))
    draft = scene.draft()
    scene.approve(draft, CLEO)
    opening = scene.steer(SetPolicy(Policy(need=1, of=1)))
    assert scene.root.state is State.ACCEPTED
    assert scene.root.winner is not None
    assert scene.root.winner.accepted_at == opening.hlc
    assert set(scene.root.drafts[draft.id].approvals) == {CLEO.peer_id}


def test_the_earliest_accepted_wins_whatever_arrives_first() -> None:
    scene = Scene(need=1)
    late, early = scene.draft(who=ADA), scene.draft(who=DORA)
    scene.approve(late, BOB, at=20)
    assert scene.root.winner is scene.root.drafts[late.id]
    scene.approve(early, CLEO, at=10)
    assert scene.root.winner is scene.root.drafts[early.id]
    assert all(scene.state(task) is State.SUPERSEDED for task in children(late))
    assert all(scene.state(task) is State.READY for task in children(early))


def test_lowering_the_quorum_accepts_what_has_the_votes_and_raising_it_unaccepts_nothing() -> None:
    scene = Scene(need=3)
    draft = scene.draft()
    scene.approve(draft, BOB, CLEO)
    assert scene.root.state is State.DRAFT
    lowered = scene.steer(SetPolicy(Policy(need=2)))
    assert scene.root.winner is not None
    assert scene.root.winner.accepted_at == lowered.hlc
    scene.steer(SetPolicy(Policy(need=3)))
    assert scene.root.state is State.ACCEPTED
    other = scene.draft()
    scene.approve(other, BOB, CLEO)
    assert scene.root.drafts[other.id].accepted_at is None


def test_the_policy_in_force_decides_not_the_order_of_arrival() -> None:
    scene = Scene(need=1)
    draft = scene.draft(at=2)
    scene.approve(draft, BOB, at=30)
    scene.steer(SetPolicy(Policy(need=2)), at=20)
    assert scene.root.state is State.DRAFT
    scene.approve(draft, CLEO, at=10)
    assert scene.root.winner is not None
    assert scene.root.winner.accepted_at == START + 10 * MS


def test_the_operator_s_pick_wins_at_once_and_the_latest_pick_counts() -> None:
    scene = Scene()
    one, other = scene.draft(who=ADA), scene.draft(who=DORA)
    pick = scene.steer(Pick(one.id))
    assert scene.root.winner is scene.root.drafts[one.id]
    assert scene.root.winner.accepted_at == pick.hlc
    scene.steer(Pick(other.id))
    assert scene.root.winner is scene.root.drafts[other.id]


def test_a_second_pick_of_the_same_draft_undoes_no_work() -> None:
    scene = Scene()
    draft = scene.draft()
    scene.steer(Pick(draft.id))
    task = children(draft)[0]
    scene.do(task)
    scene.steer(Pick(draft.id))
    assert scene.state(task) is State.DONE


def test_picking_back_brings_the_work_back() -> None:
    scene = Scene()
    one, other = scene.draft(who=ADA), scene.draft(who=DORA)
    scene.steer(Pick(one.id))
    task = children(one)[0]
    scene.do(task)
    scene.steer(Pick(other.id))
    assert scene.state(task) is State.SUPERSEDED
    scene.steer(Pick(one.id))
    assert scene.state(task) is State.DONE


def test_a_veto_rules_out_and_the_operator_s_latest_word_counts() -> None:
    scene = Scene(need=1)
    draft = scene.draft()
    scene.approve(draft, BOB)
    scene.steer(Veto(draft.id))
    assert scene.root.drafts[draft.id].vetoed
    assert scene.root.winner is None
    assert scene.root.state is State.OPEN, "a draft is wanted again"
    scene.steer(Pick(draft.id))
    assert scene.root.state is State.ACCEPTED


def test_steering_counts_only_from_the_goal_s_author() -> None:
    scene = Scene()
    draft = scene.draft()
    word = scene.steer(Pick(draft.id), who=EVA)
    assert scene.root.state is State.DRAFT
    assert not scene.means_something(word)


def test_of_an_author_s_drafts_for_a_task_eight_count_those_with_the_lowest_seq() -> None:
    scene = Scene()
    drafts = [scene.draft(who=ADA, seq=seq) for seq in reversed(range(10))]
    counting = [draft.seq for draft in drafts if scene.root.drafts[draft.id].counts]
    assert counting == list(reversed(range(MAX_PROPOSALS_PER_AUTHOR)))
    scene.draft(who=DORA)
    assert all(draft.counts for draft in scene.root.drafts.values() if draft.op.author == DORA.peer_id)


def test_vetoed_drafts_use_up_no_place() -> None:
    """Else a lone decomposer whose eight drafts were vetoed could never go on."""
    scene = Scene()
    for _ in range(MAX_PROPOSALS_PER_AUTHOR):
        scene.steer(Veto(scene.draft().id))
    assert scene.root.drafts[scene.draft().id].counts


def test_filling_in_lower_numbers_later_doesn_t_undo_an_accepted_draft() -> None:
    scene = Scene(need=2)
    draft = scene.draft(who=ADA, seq=100)
    scene.approve(draft)
    for seq in range(MAX_PROPOSALS_PER_AUTHOR):
        scene.draft(who=ADA, seq=seq)
    assert not scene.root.drafts[draft.id].counts
    assert scene.root.winner is scene.root.drafts[draft.id]


def test_an_atomic_task_isn_t_split() -> None:
    scene = Scene()
    task = scene.split()[0]
    draft = scene.draft(task)
    scene.approve(draft)
    assert scene.task(task).winner is None
    assert scene.state(task) is State.READY


def test_no_quorum_splits_a_task_at_max_depth_but_one_split_before_stays_split() -> None:
    scene = Scene(max_depth=2)
    one, other = scene.split(None, Step("one"), Step("other"))
    scene.split(one)
    scene.steer(SetPolicy(Policy(need=2, max_depth=1, synthesis="none")))
    assert scene.state(one) is State.ACCEPTED
    assert scene.state(other) is State.READY, "now a leaf"
    draft = scene.draft(other)
    scene.approve(draft)
    assert scene.task(other).winner is None


def test_votes_back_dated_before_their_draft_mean_nothing() -> None:
    scene = Scene(need=1)
    draft = scene.draft(at=10)
    vote = scene.say(BOB, Vote(draft.id, True, MARKS), at=10)
    assert not scene.means_something(vote)
    assert scene.root.state is State.DRAFT
    assert scene.replica.get(vote.id) is vote, "kept and passed on all the same"


def test_the_operator_may_vote_like_anyone() -> None:
    scene = Scene(need=1)
    draft = scene.draft()
    scene.approve(draft, OPERATOR)
    assert scene.root.state is State.ACCEPTED
