"""What a replica keeps, refuses, and tells others."""

from __future__ import annotations

import gc
import random
import sys

from swarmtui.plan.envelope import Identity, seal
from swarmtui.plan.nodes import Node
from swarmtui.plan.ops import Claim, Goal, Op, OpId, Policy, Proposal, Result, Retry, Steer, Step, Vote
from swarmtui.plan.replica import Replica
from swarmtui.plan.shelf import weight
from swarmtui.plan.state import State

from .tale import ADA, BOB, CLEO, EVA, FRED, MARKS, MS, OPERATOR, START, Tale, children, leaves, missing


def goal(title: str = "Trip", who: Identity = OPERATOR) -> Op:
    return seal(who, b"", 0, START, Goal(title, policy=Policy(synthesis="none")))


def ground_to_find(who: Identity, plan: OpId, seq: int, hlc: int, task: OpId, below: OpId) -> Op:
    """A claim whose id is lower than another's."""
    while True:
        op = seal(who, plan, seq, hlc, Claim(task))
        if op.id < below:
            return op
        hlc += 1


def test_references_may_come_after_what_refers_to_them() -> None:
    tale = Tale()
    task = tale.split()[0]
    tale.do(task)
    replica = Replica()
    for op in reversed(tale.ops[1:]):
        assert not replica.add(op).added
    assert replica.count == 0
    assert replica.waiting == len(tale.ops) - 1
    changes = replica.add(tale.ops[0])
    assert set(changes.added) == set(tale.ops)
    assert replica.waiting == 0
    assert replica.picture(tale.goal.id) == tale.replica.picture(tale.goal.id)


def test_what_refers_to_something_missing_is_kept_and_means_nothing() -> None:
    tale = Tale()
    vote = tale.say(BOB, Vote(missing(), True, MARKS))
    assert not tale.last
    assert tale.replica.get(vote.id) is vote
    assert tale.plan.ops == tale.replica.count == 2


def test_a_chain_of_many_links_grounds_backwards_without_recursion() -> None:
    tale = Tale(lease_s=1)
    task = tale.split()[0]
    count = sys.getrecursionlimit() * 3
    base = START + (tale.now + 1) * MS
    ops = [seal(EVA, tale.goal.id, 0, base, Claim(task))]
    for seq in range(1, count):
        ops.append(seal(EVA, tale.goal.id, seq, base + seq * 1000 * MS, Claim(task, ops[-1].id)))
    for op in reversed(ops[1:]):
        assert not tale.replica.add(op).added
    assert len(tale.replica.add(ops[0]).added) == count
    assert len(tale.task(task).chain) == count


def test_two_ops_with_one_number_both_count_and_show_their_author_s_fault() -> None:
    """Nobody takes back what others have built on: not the draft, nor a vote of its quorum, nor a claim."""
    tale = Tale()
    draft = tale.draft(who=ADA)
    tale.approve(draft, BOB, CLEO)
    task = children(draft)[0]
    claim = tale.claim(task, EVA)
    tale.finish(claim)
    built = tale.ops[:]
    said = [op for op in built if op.author in {who.peer_id for who in (ADA, BOB, EVA)}]
    for op in said:
        for number in range(6):  # some with lower ids, some with higher ones
            who = {each.peer_id: each for each in (ADA, BOB, EVA)}[op.author]
            other = seal(who, tale.goal.id, op.seq, op.hlc, Proposal(tale.goal.id, leaves(2), f"{op.seq} {number}"))
            changes = tale.replica.add(other)
            assert changes.added == [other]
    assert tale.plan.faulty == {ADA.peer_id, BOB.peer_id, EVA.peer_id}
    assert all(tale.means_something(op) for op in built)
    assert tale.root.winner is not None
    assert tale.root.winner.op is draft
    assert tale.task(task).chain == (claim,)
    assert tale.state(task) is State.DONE
    assert tale.replica.count == len(built) + 6 * len(said)


def test_what_is_in_a_slot_doesn_t_depend_on_the_order() -> None:
    tale = Tale()
    task = tale.split()[0]
    rivals = [seal(EVA, tale.goal.id, 0, START + (90 + i) * MS, Claim(task)) for i in range(6)]
    pictures = set()
    for seed in range(8):
        replica = Replica()
        shuffled = tale.ops + rivals
        random.Random(seed).shuffle(shuffled)
        replica.add_many(shuffled)
        assert {op.id for op in replica.lacking({})} == {op.id for op in shuffled}
        assert replica.next_seq(tale.goal.id, EVA.peer_id) == 1
        assert replica.plans[tale.goal.id].tasks[task].holder is rivals[0]
        pictures.add((replica.picture(tale.goal.id), replica.fingerprint, replica.count, replica.weight))
    assert len(pictures) == 1


def test_nobody_takes_a_plan_away_by_reusing_the_goal_s_number() -> None:
    tale = Tale()
    for i in range(20):
        tale.say(OPERATOR, Steer(Retry(missing(i))), seq=0)
    assert tale.plan.faulty == {OPERATOR.peer_id}
    assert tale.means_something(tale.goal)
    assert tale.replica.count == 21


def test_several_plans_live_side_by_side() -> None:
    replica = Replica()
    one, other = goal("one"), goal("other", FRED)
    replica.add_many([one, other])
    draft = seal(ADA, one.id, 0, START + MS, Proposal(one.id, leaves(2)))
    replica.add(draft)
    strange = seal(ADA, other.id, 0, START + 2 * MS, Vote(draft.id, True, MARKS))
    replica.add(strange)
    assert not replica.grounded(strange), "what belongs to another plan can't be referred to"
    assert set(replica.plans) == {one.id, other.id}
    assert [op.id for op in replica.ops(one.id)] == [one.id, draft.id]
    assert list(replica.ops()) == sorted([one, other, draft, strange], key=lambda op: op.order)


def test_numbers_go_on_behind_the_highest_held() -> None:
    tale = Tale()
    assert tale.replica.next_seq(tale.goal.id, OPERATOR.peer_id) == 1
    assert tale.replica.next_seq(tale.goal.id, EVA.peer_id) == 0
    tale.claim(tale.goal.id, EVA)
    tale.say(EVA, Claim(tale.goal.id), seq=7)
    assert tale.replica.next_seq(tale.goal.id, EVA.peer_id) == 8
    assert tale.replica.next_seq(b"", EVA.peer_id) == 0
    assert tale.replica.vector() == {tale.goal.id: {OPERATOR.peer_id: 1, EVA.peer_id: 1}}


def test_what_another_lacks_comes_goals_first_then_in_order() -> None:
    tale = Tale()
    tale.split()
    odd = seal(FRED, tale.goal.id, 0, START - MS, Claim(tale.goal.id))
    tale.replica.add(odd)
    given = list(tale.replica.lacking({}))
    assert given[0] is tale.goal
    assert given[1:] == sorted(tale.ops[1:] + [odd], key=lambda op: op.order)
    assert list(tale.replica.lacking(tale.replica.vector())) == []
    partly = {tale.goal.id: {OPERATOR.peer_id: 1, ADA.peer_id: 1, BOB.peer_id: 0}}
    assert {op.author for op in tale.replica.lacking(partly)} == {BOB.peer_id, CLEO.peer_id, FRED.peer_id}


def test_a_vector_of_nonsense_is_taken_calmly() -> None:
    tale = Tale()
    tale.split()
    strange = {missing(): {"nobody": 3}, tale.goal.id: {ADA.peer_id: -5, BOB.peer_id: 1 << 40}}
    assert {op.author for op in tale.replica.lacking(strange)} == {OPERATOR.peer_id, ADA.peer_id, CLEO.peer_id}


def test_behind_a_gap_everything_is_offered() -> None:
    """Within one author by number."""
    tale = Tale()
    tale.claim(tale.goal.id, EVA)
    late = [tale.say(EVA, Claim(tale.goal.id), seq=seq) for seq in (9, 5)]
    assert list(tale.replica.lacking({tale.goal.id: {OPERATOR.peer_id: 1, EVA.peer_id: 1}})) == late[::-1]


def test_fingerprints_tell_sets_apart_but_not_orders() -> None:
    tale = Tale()
    tale.split()
    empty, forward, backward = Replica(), Replica(), Replica()
    prints = [empty.fingerprint]
    for op in tale.ops:
        forward.add(op)
        prints.append(forward.fingerprint)
    assert len(set(prints)) == len(tale.ops) + 1
    assert all(len(mark) == 16 for mark in prints)
    backward.add_many(tale.ops[::-1])
    assert backward.fingerprint == forward.fingerprint


# -- bounds


def flood(plan: OpId, count: int, who: Identity = EVA) -> list[Op]:
    return [seal(who, plan, seq, START + (seq + 1) * MS, Claim(missing(), b"")) for seq in range(count)]


def test_an_author_over_its_budget_is_refused_and_named_and_others_go_on() -> None:
    root = goal()
    ops = flood(root.id, 10)
    replica = Replica(author_budget=max(weight(root), 4 * weight(ops[0])))
    replica.add(root)
    kept = [bool(replica.add(op) or replica.get(op.id)) for op in ops]
    assert kept[:4] == [True] * 4
    assert not any(kept[4:])
    assert replica.refused == {"the author's budget is used up": 6}
    assert replica.refused_by == {EVA.peer_id: {"the author's budget is used up": 6}}
    assert replica.count == 5
    replica.add(flood(root.id, 1, FRED)[0])
    assert replica.count == 6


def test_the_whole_replica_has_a_budget() -> None:
    root = goal()
    op = flood(root.id, 1)[0]
    replica = Replica(total_budget=weight(root) + weight(op))
    replica.add_many([root, op, *flood(root.id, 5, FRED)])
    assert replica.refused == {"the replica is full": 5}
    assert replica.weight <= weight(root) + weight(op)


def test_ops_in_one_slot_use_up_the_author_s_budget_like_any_others() -> None:
    tale = Tale()
    ops = [seal(EVA, tale.goal.id, 0, START + (100 + i) * MS, Claim(tale.goal.id)) for i in range(50)]
    replica = Replica(author_budget=10 * weight(ops[0]))
    replica.add_many([tale.goal, *ops])
    assert replica.count == 1 + 10
    assert replica.refused == {"the author's budget is used up": 40}


def test_the_pen_is_bounded_and_no_author_fills_it_alone() -> None:
    root = goal()
    ops, others = flood(root.id, 100), flood(root.id, 5, FRED)
    replica = Replica(pen_limit=40 * weight(ops[0]))
    replica.add_many(ops + ops + others)
    assert replica.waiting == 10 + 5
    assert replica.weight == 15 * weight(ops[0])
    assert replica.refused == {"no room for ops of unknown plans": 2 * 90}
    assert (replica.count, replica.plans, replica.vector()) == (0, {}, {})
    replica.add(root)
    assert replica.waiting == 0
    assert replica.count == 16
    replica.add_many(ops)
    assert replica.count == 106, "what was refused before can come again"


def test_only_so_many_authors_are_named() -> None:
    replica = Replica(pen_limit=0)
    for i in range(1_005):
        who = Identity.from_seed(i.to_bytes(32, "big"))
        replica.add(seal(who, missing(), 0, START, Result(missing(), "x")))
    assert len(replica.refused_by) == 1_000
    assert replica.refused["no room for ops of unknown plans"] == 1_005


def test_no_more_than_eight_levels() -> None:
    tale = Tale(max_depth=8)
    task = tale.goal.id
    for depth in range(8):
        assert tale.task(task).depth == depth
        task = tale.split(task, Step("deeper"), Step("aside"))[0]
    assert tale.state(task) is State.READY, "a leaf, whatever it says"
    assert not tale.means_something(tale.draft(task))


def test_a_replica_that_is_dropped_leaves_nothing() -> None:
    def nodes() -> int:
        gc.collect()
        return sum(isinstance(thing, Node) for thing in gc.get_objects())

    before = nodes()
    tale = Tale()
    tale.do(tale.split()[0])
    assert nodes() == before + 3
    del tale
    assert nodes() == before
