"""Claims, releases, results, retries, what waits for what, and merging."""

from __future__ import annotations

import pytest

from swarmtui.plan.ops import Note, Pause, Policy, Release, Result, Retry, SetPolicy, Step
from swarmtui.plan.state import State

from .scene import DORA, EVA, FRED, OPERATOR, Scene, children, leaves

LEASE = 60_000


def test_a_leaf_is_ready_claimed_and_done() -> None:
    scene = Scene()
    task = scene.split()[0]
    assert scene.state(task) is State.READY
    assert scene.task(task).leaf
    claim = scene.claim(task)
    assert scene.state(task) is State.CLAIMED
    assert scene.task(task).holder is claim
    result = scene.finish(claim)
    assert scene.state(task) is State.DONE
    assert scene.task(task).result is result


def test_a_task_waits_for_the_results_that_it_uses() -> None:
    scene = Scene()
    first, second = scene.split(None, Step("first", atomic=True), Step("second", atomic=True, after=(0,)))
    assert scene.state(second) is State.WAITING
    eager = scene.claim(second)
    scene.finish(eager)
    assert scene.state(second) is State.WAITING
    scene.do(first)
    assert scene.state(second) is State.READY, "what was done before its time doesn't count"
    scene.do(second)
    assert scene.plan.done


def test_a_task_waits_for_what_its_ancestors_wait_for() -> None:
    scene = Scene()
    first, second = scene.split(None, Step("first", atomic=True), Step("second", after=(0,)))
    inner = scene.split(second)[0]
    assert scene.state(inner) is State.WAITING
    scene.do(first)
    assert scene.state(inner) is State.READY


def test_the_first_claim_holds_and_an_earlier_one_that_comes_late_takes_its_place() -> None:
    scene = Scene()
    task = scene.split()[0]
    later = scene.claim(task, EVA, at=100)
    earlier = scene.claim(task, FRED, at=90)
    assert scene.task(task).holder is earlier
    assert later not in scene.task(task).chain


def test_of_claims_at_one_instant_a_lot_decides_that_differs_from_task_to_task() -> None:
    scene = Scene()
    tasks = scene.split(None, *leaves(16))
    for task in tasks:
        scene.claim(task, EVA, at=100)
        scene.claim(task, FRED, at=100)
    holders = {scene.task(task).holder.author for task in tasks}  # type: ignore[union-attr]
    assert holders == {EVA.peer_id, FRED.peer_id}


def test_a_released_task_can_be_claimed_again_after_the_release() -> None:
    scene = Scene()
    task = scene.split()[0]
    first = scene.claim(task, EVA, at=100)
    early = scene.claim(task, FRED, prior=first, at=150)
    assert scene.task(task).holder is first
    scene.release(first, at=200)
    assert scene.state(task) is State.READY
    assert scene.task(task).holder is None
    second = scene.claim(task, FRED, prior=first, at=300)
    assert scene.task(task).chain == (first, second)
    assert early not in scene.task(task).chain


def test_a_silent_holder_can_be_taken_over_after_its_lease() -> None:
    scene = Scene(lease_s=60)
    task = scene.split()[0]
    first = scene.claim(task, EVA, at=100)
    scene.claim(task, FRED, prior=first, at=100 + LEASE - 1)
    assert scene.task(task).holder is first
    second = scene.claim(task, FRED, prior=first, at=100 + LEASE)
    assert scene.task(task).chain == (first, second)


def test_after_as_many_releases_as_the_policy_allows_the_task_has_failed_until_a_retry() -> None:
    scene = Scene(attempts=2)
    task = scene.split()[0]
    first = scene.claim(task)
    scene.release(first)
    second = scene.claim(task, prior=first)
    scene.release(second)
    assert scene.state(task) is State.FAILED
    assert scene.task(task).releases == 2
    scene.claim(task, FRED, prior=second)
    assert scene.state(task) is State.FAILED
    scene.steer(Retry(task))
    assert scene.state(task) is State.READY
    assert scene.task(task).releases == 0


@pytest.mark.parametrize("with_prior", [False, True])
def test_after_a_retry_a_claim_counts_with_and_without_the_old_one_as_prior(with_prior: bool) -> None:
    scene = Scene()
    task = scene.split()[0]
    old = scene.claim(task)
    scene.steer(Retry(task))
    assert scene.state(task) is State.READY
    new = scene.claim(task, FRED, prior=old if with_prior else None)
    assert scene.task(task).chain == (new,)


def test_releasing_what_was_taken_over_before_is_no_failure() -> None:
    """Else the late words of a peer that came back would throw out the one that works."""
    scene = Scene(attempts=1)
    task = scene.split()[0]
    first = scene.claim(task, EVA)
    second = scene.claim(task, FRED, prior=first, at=scene.now + LEASE)
    scene.release(first)
    assert scene.task(task).holder is second
    assert scene.state(task) is State.CLAIMED


def test_a_result_of_a_released_or_lost_claim_counts_all_the_same() -> None:
    scene = Scene(attempts=1)
    one, other = scene.split()
    released = scene.claim(one)
    scene.release(released)
    assert scene.state(one) is State.FAILED
    scene.finish(released)
    assert scene.state(one) is State.DONE
    scene.claim(other, EVA, at=100)
    lost = scene.claim(other, FRED, at=101)
    scene.finish(lost)
    assert scene.state(other) is State.DONE


def test_done_stays_done_when_an_earlier_claim_turns_up() -> None:
    scene = Scene()
    task = scene.split()[0]
    claim = scene.claim(task, EVA, at=100)
    result = scene.finish(claim, at=200)
    scene.claim(task, FRED, at=50)
    assert scene.state(task) is State.DONE
    assert scene.task(task).result is result


def test_of_several_results_the_earliest_is_the_task_s() -> None:
    scene = Scene()
    task = scene.split()[0]
    claim, other = scene.claim(task, EVA, at=100), scene.claim(task, FRED, at=101)
    scene.finish(claim, at=300)
    early = scene.finish(other, at=200)
    assert scene.task(task).result is early


def test_only_the_claim_s_author_can_release_it_or_bring_its_result() -> None:
    scene = Scene()
    task = scene.split()[0]
    claim = scene.claim(task, EVA)
    for body in (Release(claim.id), Result(claim.id, "mine")):
        assert not scene.means_something(scene.say(FRED, body))
    assert scene.state(task) is State.CLAIMED


def test_a_claim_s_prior_has_to_be_of_the_same_task() -> None:
    scene = Scene()
    one, other = scene.split()
    assert not scene.means_something(scene.claim(one, prior=scene.claim(other)))


def test_a_retry_undoes_a_task_and_what_used_it_and_both_can_be_done_again() -> None:
    scene = Scene()
    first, second = scene.split(None, Step("first", atomic=True), Step("second", atomic=True, after=(0,)))
    scene.do(first)
    scene.do(second)
    assert scene.plan.done
    scene.steer(Retry(first))
    assert scene.state(first) is State.READY
    assert scene.state(second) is State.WAITING
    scene.do(first)
    assert scene.state(second) is State.READY
    scene.do(second)
    assert scene.plan.done


def test_a_back_dated_claim_before_the_split_was_accepted_doesn_t_count() -> None:
    scene = Scene()
    draft = scene.draft(at=10)
    scene.approve(draft, at=50)
    task = children(draft)[0]
    claim = scene.claim(task, at=50)
    assert scene.means_something(claim)
    assert scene.state(task) is State.READY


def test_a_branch_without_synthesis_is_done_with_its_last_child() -> None:
    scene = Scene(synthesis="none")
    for task in scene.split():
        scene.do(task)
    assert scene.root.state is State.DONE
    assert scene.root.result is None


def test_with_synthesis_the_root_is_merged_when_its_children_are_done() -> None:
    scene = Scene(synthesis="root")
    one, other = scene.split()
    scene.do(one)
    scene.do(scene.goal.id)
    assert scene.root.state is State.ACCEPTED
    scene.do(other)
    assert scene.root.state is State.READY, "the early merge doesn't count"
    scene.do(scene.goal.id)
    assert scene.plan.done
    scene.steer(Retry(one))
    assert scene.root.state is State.ACCEPTED
    scene.do(one)
    assert scene.root.state is State.READY, "what was merged was redone"


def test_synthesis_of_all_merges_every_branch() -> None:
    scene = Scene(synthesis="all")
    branch, leaf = scene.split(None, Step("branch"), Step("leaf", atomic=True))
    for task in scene.split(branch):
        scene.do(task)
    assert scene.state(branch) is State.READY
    scene.do(branch)
    scene.do(leaf)
    assert scene.root.state is State.READY


def test_switching_synthesis_on_undoes_no_branch_that_was_finished() -> None:
    scene = Scene(synthesis="none")
    branch, leaf = scene.split(None, Step("branch"), Step("leaf", atomic=True, after=(0,)))
    for task in scene.split(branch):
        scene.do(task)
    scene.do(leaf)
    scene.steer(SetPolicy(Policy(need=2, synthesis="all")))
    assert scene.state(branch) is State.DONE
    assert scene.state(leaf) is State.DONE
    assert scene.root.state is State.READY, "the root is merged by the latest policy"


def test_switching_synthesis_off_frees_what_waits_for_it() -> None:
    scene = Scene(synthesis="all")
    for task in scene.split():
        scene.do(task)
    assert scene.root.state is State.READY
    scene.steer(SetPolicy(Policy(need=2, synthesis="none")))
    assert scene.plan.done


def test_raising_max_depth_undoes_no_leaf_that_was_worked_on() -> None:
    scene = Scene(max_depth=1)
    worked, begun, open_ = scene.split(None, Step("worked"), Step("begun"), Step("open"))
    scene.do(worked)
    claim = scene.claim(begun)
    scene.steer(SetPolicy(Policy(need=2, max_depth=3, synthesis="none")))
    assert scene.state(worked) is State.DONE
    assert scene.task(worked).leaf
    assert scene.state(open_) is State.OPEN
    scene.finish(claim)
    assert scene.state(begun) is State.DONE
    scene.do(open_)
    assert scene.state(open_) is State.OPEN, "a branch isn't done by a claim made when it was one"


def test_the_root_is_never_a_leaf() -> None:
    scene = Scene(synthesis="root")
    scene.do(scene.goal.id)
    assert scene.root.state is State.OPEN
    assert not scene.root.leaf


def test_notes_and_pauses() -> None:
    scene = Scene()
    task = scene.split()[0]
    late, early = scene.steer(Note(task, "late"), at=200), scene.steer(Note(task, "early"), at=100)
    assert scene.task(task).notes == (early, late)
    scene.steer(Pause(True))
    assert scene.plan.paused
    assert scene.last.plans == {scene.goal.id}
    scene.steer(Pause(False), at=10)
    assert scene.plan.paused, "an earlier word that comes late"
    scene.steer(Pause(False))
    assert not scene.plan.paused
    assert not scene.means_something(scene.steer(Pause(True), who=DORA))


def test_a_plan_s_policy_is_the_latest() -> None:
    scene = Scene(need=2)
    scene.steer(SetPolicy(Policy(need=1, rivals=5)), at=100)
    scene.steer(SetPolicy(Policy(need=1, rivals=4)), at=50)
    assert scene.plan.policy.rivals == 5
    assert scene.plan.operator == OPERATOR.peer_id
