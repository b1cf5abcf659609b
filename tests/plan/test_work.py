"""Claims, releases, results, retries, what waits for what, and merging."""

from __future__ import annotations

import pytest

from swarmtui.plan.ops import Note, Pause, Policy, Release, Result, Retry, SetPolicy, Step
from swarmtui.plan.rules import MAX_GIVEN_BACK
from swarmtui.plan.state import State

from .tale import DORA, EVA, FRED, OPERATOR, Tale, children, leaves

LEASE = 60_000


def test_a_leaf_is_ready_claimed_and_done() -> None:
    tale = Tale()
    task = tale.split()[0]
    assert tale.state(task) is State.READY
    assert tale.task(task).leaf
    claim = tale.claim(task)
    assert tale.state(task) is State.CLAIMED
    assert tale.task(task).holder is claim
    result = tale.finish(claim)
    assert tale.state(task) is State.DONE
    assert tale.task(task).result is result


def test_a_task_waits_for_the_results_that_it_uses() -> None:
    tale = Tale()
    first, second = tale.split(None, Step("first", atomic=True), Step("second", atomic=True, after=(0,)))
    assert tale.state(second) is State.WAITING
    eager = tale.claim(second)
    tale.finish(eager)
    assert tale.state(second) is State.WAITING
    tale.do(first)
    assert tale.state(second) is State.READY, "what was done before its time doesn't count"
    tale.do(second)
    assert tale.plan.done


def test_a_task_waits_for_what_its_ancestors_wait_for() -> None:
    tale = Tale()
    first, second = tale.split(None, Step("first", atomic=True), Step("second", after=(0,)))
    inner = tale.split(second)[0]
    assert tale.state(inner) is State.WAITING
    tale.do(first)
    assert tale.state(inner) is State.READY


def test_the_first_claim_holds_and_an_earlier_one_that_comes_late_takes_its_place() -> None:
    tale = Tale()
    task = tale.split()[0]
    later = tale.claim(task, EVA, at=100)
    earlier = tale.claim(task, FRED, at=90)
    assert tale.task(task).holder is earlier
    assert later not in tale.task(task).chain


def test_of_claims_at_one_instant_a_lot_decides_that_differs_from_task_to_task() -> None:
    tale = Tale()
    tasks = tale.split(None, *leaves(16))
    for task in tasks:
        tale.claim(task, EVA, at=100)
        tale.claim(task, FRED, at=100)
    holders = {tale.task(task).holder.author for task in tasks}  # type: ignore[union-attr]
    assert holders == {EVA.peer_id, FRED.peer_id}


def test_a_released_task_can_be_claimed_again_after_the_release() -> None:
    tale = Tale()
    task = tale.split()[0]
    first = tale.claim(task, EVA, at=100)
    early = tale.claim(task, FRED, prior=first, at=150)
    assert tale.task(task).holder is first
    tale.release(first, at=200)
    assert tale.state(task) is State.READY
    assert tale.task(task).holder is None
    second = tale.claim(task, FRED, prior=first, at=300)
    assert tale.task(task).chain == (first, second)
    assert early not in tale.task(task).chain


def test_a_silent_holder_can_be_taken_over_after_its_lease() -> None:
    tale = Tale(lease_s=60)
    task = tale.split()[0]
    first = tale.claim(task, EVA, at=100)
    tale.claim(task, FRED, prior=first, at=100 + LEASE - 1)
    assert tale.task(task).holder is first
    second = tale.claim(task, FRED, prior=first, at=100 + LEASE)
    assert tale.task(task).chain == (first, second)


def test_after_as_many_releases_as_the_policy_allows_the_task_has_failed_until_a_retry() -> None:
    tale = Tale(attempts=2)
    task = tale.split()[0]
    first = tale.claim(task)
    tale.release(first)
    second = tale.claim(task, prior=first)
    tale.release(second)
    assert tale.state(task) is State.FAILED
    assert tale.task(task).releases == 2
    tale.claim(task, FRED, prior=second)
    assert tale.state(task) is State.FAILED
    tale.steer(Retry(task))
    assert tale.state(task) is State.READY
    assert tale.task(task).releases == 0


def test_what_is_only_given_back_is_no_failure() -> None:
    tale = Tale(attempts=2)
    task = tale.split()[0]
    claim = tale.claim(task)
    tale.release(claim)
    for who in (EVA, FRED, EVA, FRED):
        claim = tale.claim(task, who, prior=claim)
        tale.release(claim, failed=False)
        assert tale.state(task) is State.READY
        assert tale.task(task).holder is None
    assert tale.task(task).releases == 1
    claim = tale.claim(task, prior=claim)
    tale.release(claim)
    assert tale.state(task) is State.FAILED


def test_of_two_releases_of_one_claim_the_first_says_whether_it_failed() -> None:
    tale = Tale(attempts=1)
    one, two = tale.split()[:2]
    claim = tale.claim(one, at=100)
    tale.release(claim, at=300)
    assert tale.state(one) is State.FAILED
    tale.release(claim, at=200, failed=False)
    assert tale.state(one) is State.READY
    claim = tale.claim(two, at=100)
    tale.release(claim, at=300, failed=False)
    tale.release(claim, at=200)
    assert tale.state(two) is State.FAILED


def test_a_chain_of_work_given_back_has_an_end() -> None:
    """Else a member could make it longer without end, and everybody reckon it again each time."""
    tale = Tale(attempts=1)
    task = tale.split()[0]
    claim = None
    for number in range(MAX_GIVEN_BACK + 1):
        assert tale.state(task) is State.READY, number
        claim = tale.claim(task, prior=claim)
        tale.release(claim, failed=False)
    assert tale.state(task) is State.FAILED
    assert len(tale.task(task).chain) == MAX_GIVEN_BACK + 1


@pytest.mark.parametrize("with_prior", [False, True])
def test_after_a_retry_a_claim_counts_with_and_without_the_old_one_as_prior(with_prior: bool) -> None:
    tale = Tale()
    task = tale.split()[0]
    old = tale.claim(task)
    tale.steer(Retry(task))
    assert tale.state(task) is State.READY
    new = tale.claim(task, FRED, prior=old if with_prior else None)
    assert tale.task(task).chain == (new,)


def test_releasing_what_was_taken_over_before_is_no_failure() -> None:
    """Else the late words of a peer that came back would throw out the one that works."""
    tale = Tale(attempts=1)
    task = tale.split()[0]
    first = tale.claim(task, EVA)
    second = tale.claim(task, FRED, prior=first, at=tale.now + LEASE)
    tale.release(first)
    assert tale.task(task).holder is second
    assert tale.state(task) is State.CLAIMED


def test_a_result_of_a_released_or_lost_claim_counts_all_the_same() -> None:
    tale = Tale(attempts=1)
    one, other = tale.split()
    released = tale.claim(one)
    tale.release(released)
    assert tale.state(one) is State.FAILED
    tale.finish(released)
    assert tale.state(one) is State.DONE
    tale.claim(other, EVA, at=100)
    lost = tale.claim(other, FRED, at=101)
    tale.finish(lost)
    assert tale.state(other) is State.DONE


def test_done_stays_done_when_an_earlier_claim_turns_up() -> None:
    tale = Tale()
    task = tale.split()[0]
    claim = tale.claim(task, EVA, at=100)
    result = tale.finish(claim, at=200)
    tale.claim(task, FRED, at=50)
    assert tale.state(task) is State.DONE
    assert tale.task(task).result is result


def test_of_several_results_the_earliest_is_the_task_s() -> None:
    tale = Tale()
    task = tale.split()[0]
    claim, other = tale.claim(task, EVA, at=100), tale.claim(task, FRED, at=101)
    tale.finish(claim, at=300)
    early = tale.finish(other, at=200)
    assert tale.task(task).result is early


def test_only_the_claim_s_author_can_release_it_or_bring_its_result() -> None:
    tale = Tale()
    task = tale.split()[0]
    claim = tale.claim(task, EVA)
    for body in (Release(claim.id), Result(claim.id, "mine")):
        assert not tale.means_something(tale.say(FRED, body))
    assert tale.state(task) is State.CLAIMED


def test_a_claim_s_prior_has_to_be_of_the_same_task() -> None:
    tale = Tale()
    one, other = tale.split()
    assert not tale.means_something(tale.claim(one, prior=tale.claim(other)))


def test_a_retry_undoes_a_task_and_what_used_it_and_both_can_be_done_again() -> None:
    tale = Tale()
    first, second = tale.split(None, Step("first", atomic=True), Step("second", atomic=True, after=(0,)))
    tale.do(first)
    tale.do(second)
    assert tale.plan.done
    tale.steer(Retry(first))
    assert tale.state(first) is State.READY
    assert tale.state(second) is State.WAITING
    tale.do(first)
    assert tale.state(second) is State.READY
    tale.do(second)
    assert tale.plan.done


def test_a_back_dated_claim_before_the_split_was_accepted_doesn_t_count() -> None:
    tale = Tale()
    draft = tale.draft(at=10)
    tale.approve(draft, at=50)
    task = children(draft)[0]
    claim = tale.claim(task, at=50)
    assert tale.means_something(claim)
    assert tale.state(task) is State.READY


def test_a_branch_without_synthesis_is_done_with_its_last_child() -> None:
    tale = Tale(synthesis="none")
    for task in tale.split():
        tale.do(task)
    assert tale.root.state is State.DONE
    assert tale.root.result is None


def test_with_synthesis_the_root_is_merged_when_its_children_are_done() -> None:
    tale = Tale(synthesis="root")
    one, other = tale.split()
    tale.do(one)
    tale.do(tale.goal.id)
    assert tale.root.state is State.ACCEPTED
    tale.do(other)
    assert tale.root.state is State.READY, "the early merge doesn't count"
    tale.do(tale.goal.id)
    assert tale.plan.done
    tale.steer(Retry(one))
    assert tale.root.state is State.ACCEPTED
    tale.do(one)
    assert tale.root.state is State.READY, "what was merged was redone"


def test_synthesis_of_all_merges_every_branch() -> None:
    tale = Tale(synthesis="all")
    branch, leaf = tale.split(None, Step("branch"), Step("leaf", atomic=True))
    for task in tale.split(branch):
        tale.do(task)
    assert tale.state(branch) is State.READY
    tale.do(branch)
    tale.do(leaf)
    assert tale.root.state is State.READY


def test_switching_synthesis_on_undoes_no_branch_that_was_finished() -> None:
    tale = Tale(synthesis="none")
    branch, leaf = tale.split(None, Step("branch"), Step("leaf", atomic=True, after=(0,)))
    for task in tale.split(branch):
        tale.do(task)
    tale.do(leaf)
    tale.steer(SetPolicy(Policy(need=2, synthesis="all")))
    assert tale.state(branch) is State.DONE
    assert tale.state(leaf) is State.DONE
    assert tale.root.state is State.READY, "the root is merged by the latest policy"


def test_switching_synthesis_off_frees_what_waits_for_it() -> None:
    tale = Tale(synthesis="all")
    for task in tale.split():
        tale.do(task)
    assert tale.root.state is State.READY
    tale.steer(SetPolicy(Policy(need=2, synthesis="none")))
    assert tale.plan.done


def test_raising_max_depth_undoes_no_leaf_that_was_worked_on() -> None:
    tale = Tale(max_depth=1)
    worked, begun, open_ = tale.split(None, Step("worked"), Step("begun"), Step("open"))
    tale.do(worked)
    claim = tale.claim(begun)
    tale.steer(SetPolicy(Policy(need=2, max_depth=3, synthesis="none")))
    assert tale.state(worked) is State.DONE
    assert tale.task(worked).leaf
    assert tale.state(open_) is State.OPEN
    tale.finish(claim)
    assert tale.state(begun) is State.DONE
    tale.do(open_)
    assert tale.state(open_) is State.OPEN, "a branch isn't done by a claim made when it was one"


def test_the_root_is_never_a_leaf() -> None:
    tale = Tale(synthesis="root")
    tale.do(tale.goal.id)
    assert tale.root.state is State.OPEN
    assert not tale.root.leaf


def test_notes_and_pauses() -> None:
    tale = Tale()
    task = tale.split()[0]
    late, early = tale.steer(Note(task, "late"), at=200), tale.steer(Note(task, "early"), at=100)
    assert tale.task(task).notes == (early, late)
    tale.steer(Pause(True))
    assert tale.plan.paused
    assert tale.last.plans == {tale.goal.id}
    tale.steer(Pause(False), at=10)
    assert tale.plan.paused, "an earlier word that comes late"
    tale.steer(Pause(False))
    assert not tale.plan.paused
    assert not tale.means_something(tale.steer(Pause(True), who=DORA))


def test_a_plan_s_policy_is_the_latest() -> None:
    tale = Tale(need=2)
    tale.steer(SetPolicy(Policy(need=1, rivals=5)), at=100)
    tale.steer(SetPolicy(Policy(need=1, rivals=4)), at=50)
    assert tale.plan.policy.rivals == 5
    assert tale.plan.operator == OPERATOR.peer_id
