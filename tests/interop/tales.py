"""Small plans, each told for one rule of docs/protocol.md, section 3. The first line says which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from swarmtui.plan.envelope import Identity, seal
from swarmtui.plan.ops import (
    Claim,
    Goal,
    Note,
    Op,
    Pause,
    Pick,
    Policy,
    Proposal,
    Release,
    Result,
    Retry,
    SetPolicy,
    Steer,
    Step,
    Veto,
    Vote,
)
from tests.plan.histories import foreign
from tests.plan.tale import ADA, BOB, CLEO, DORA, EVA, FRED, MARKS, MS, OPERATOR, START, Tale, children, leaves, missing

SECOND = 1000
"""In the milliseconds of a tale."""


class Brief(Tale):
    """A tale in which one approval is enough, so that there's less to tell."""

    def __init__(self, **policy: Any) -> None:
        super().__init__(**{"need": 1} | policy)

    def approve(self, draft: Op, *who: Identity, at: float | None = None) -> None:
        super().approve(draft, *(who or (BOB,)), at=at)


def whole() -> list[Op]:
    """A plan from its goal to its merged end."""
    t = Brief(synthesis="root", max_depth=2)
    first, second = t.split(t.goal.id, Step("Book", "a room", needs="write"), Step("Pack", after=(0,)))
    one, two = t.split(first, *leaves(2))
    for task in (one, two):
        t.do(task)
    t.split(second, Step("Find the bag", atomic=True), Step("Fill it", after=(0,)))
    for task in t.task(second).children:
        t.do(task, FRED)
    t.do(t.goal.id, DORA)
    return t.ops


def goals() -> list[Op]:
    """The same goal twice, told apart by its nonce; and one with every field."""
    t = Tale()
    t.ops.append(Tale().goal)
    full = Policy(3, 5, (ADA.peer_id, BOB.peer_id), 4, 1, (3, 5), 5, 70, 60, 30, 2, 500, ("write", "cook"), "all")
    t.say(OPERATOR, Goal("Trip", "to the sea", full, b"again"))
    t.say(OPERATOR, Goal("Trip", "to the sea", full, b"and again"))
    return t.ops


def first_approval() -> list[Op]:
    """A scorer counts once, at its first approval; a later rejection takes nothing back; own votes mean nothing."""
    t = Tale()
    draft = t.draft(who=ADA)
    t.reject(draft, BOB)
    t.approve(draft, ADA)
    t.approve(draft, CLEO, at=10)
    t.approve(draft, CLEO, at=12)
    t.reject(draft, CLEO, at=14)
    t.approve(draft, BOB, at=11)
    return t.ops


def two_accepted() -> list[Op]:
    """Two drafts reach the quorum: the earlier one wins, the other's tasks are superseded."""
    t = Tale()
    one, two = t.draft(who=ADA), t.draft(who=BOB)
    t.approve(two, CLEO, DORA, at=30)
    t.approve(one, CLEO, DORA, at=20)
    t.draft(children(two)[0], who=EVA)
    return t.ops


def accepted_together() -> list[Op]:
    """Two drafts reach the quorum at one hlc: the lower op id wins."""
    t = Tale()
    for draft in (t.draft(who=ADA), t.draft(who=BOB)):
        t.approve(draft, CLEO, DORA, at=20)
    return t.ops


def closed_list() -> list[Op]:
    """Only listed scorers count; when the list is opened, the votes that there are count from then on."""
    t = Tale(scorers=(BOB.peer_id, CLEO.peer_id))
    draft, other = t.draft(), t.draft()
    t.approve(draft, DORA, EVA, BOB, at=10)
    t.approve(other, DORA, EVA, at=11)
    t.steer(SetPolicy(Policy(need=2, of=3, synthesis="none")), at=20)
    return t.ops


def policies() -> list[Op]:
    """The policy in force at a time decides: a lower quorum accepts what has the votes, a higher un-accepts nothing."""
    t = Tale(need=3, of=3)
    draft = t.draft()
    t.approve(draft, BOB, CLEO, at=10)
    t.steer(SetPolicy(Policy(need=2, of=3, lease_s=5, synthesis="none")), at=20)
    t.steer(SetPolicy(Policy(need=3, of=3, attempts=1, synthesis="none")), at=30)
    task = children(draft)[0]
    t.release(t.claim(task, at=40), at=50)
    # Two of one hlc: the greater id.
    t.steer(SetPolicy(Policy(need=1, of=3, synthesis="none")), at=60)
    t.steer(SetPolicy(Policy(need=1, of=2, attempts=2, synthesis="none")), at=60)
    return t.ops


def words() -> list[Op]:
    """Picks and vetoes: the latest word on a draft, the latest pick of a task, accepted at the first pick."""
    t = Tale()
    a, b, c = t.draft(who=ADA), t.draft(who=BOB), t.draft(who=CLEO)
    t.approve(a, DORA, EVA)
    t.steer(Veto(a.id))
    t.steer(Pick(b.id), at=40)
    claim = t.claim(children(b)[0])
    t.approve(b, CLEO, DORA, at=50)  # it was accepted by then
    t.finish(claim)
    t.steer(Pick(c.id), at=60)
    t.steer(Veto(c.id), at=70)
    t.steer(Pick(b.id), at=80)
    t.steer(Pick(a.id), at=75)
    t.steer(Pick(c.id), who=FRED)  # not the operator: means nothing
    return t.ops


def atomic() -> list[Op]:
    """An atomic step has drafts but no winner; at max_depth no quorum splits, but the operator's pick does."""
    t = Brief(max_depth=1)
    one, two = t.split(t.goal.id, Step("a", atomic=True), Step("b"))
    t.approve(t.draft(one))
    t.steer(Pick(t.draft(one).id))
    t.approve(t.draft(two))
    t.steer(Pick(t.draft(two, who=BOB).id))
    return t.ops


def drafts() -> list[Op]:
    """Of an author's drafts of a task those after the eighth aren't worth judging; vetoed ones use up no place."""
    t = Brief()
    said = [t.draft(None, *leaves(2), who=ADA) for _ in range(10)]
    t.steer(Veto(said[0].id))
    t.approve(said[9])
    return t.ops


def waiting() -> list[Op]:
    """A task waits for the steps in its `after` and in its ancestors'; a claim before that doesn't count."""
    t = Brief(max_depth=2)
    one, two, three = t.split(
        t.goal.id, Step("one", atomic=True), Step("two", after=(0,)), Step("three", atomic=True, after=(0, 1))
    )
    below = t.split(two, *leaves(2))
    t.claim(below[0])
    t.claim(three)
    t.do(one)
    t.do(below[1])
    return t.ops


def chain() -> list[Op]:
    """Holders: the first claim; after a release or a lapsed lease the first that names the last link as prior."""
    t = Brief(lease_s=10, attempts=5)
    released, lapsed, early, late = t.split(t.goal.id, *leaves(4))
    one = t.claim(released, EVA, at=1000)
    t.release(one, at=2000)
    t.claim(released, FRED, at=1900, prior=one)  # before the release
    t.claim(released, DORA, at=2100, prior=one)
    t.claim(released, BOB, at=2050)  # names no prior
    one = t.claim(lapsed, EVA, at=1000)
    two = t.claim(lapsed, FRED, at=1000 + 10 * SECOND, prior=one)
    t.claim(lapsed, DORA, at=1000 + 10 * SECOND - 1, prior=one)
    t.claim(lapsed, BOB, at=1000 + 19 * SECOND, prior=two)
    t.claim(early, EVA, at=900)
    t.claim(early, FRED, at=800)
    # Released after, and at the very hlc at which, it was taken over: no failure.
    one = t.claim(late, EVA, at=1000)
    two = t.claim(late, FRED, at=1000 + 10 * SECOND, prior=one)
    t.release(one, at=1000 + 10 * SECOND)
    t.release(two, at=1000 + 30 * SECOND)
    return t.ops


def given_back() -> list[Op]:
    """A release that says so is no failure, but the 65th of a chain; of two releases of one claim the first counts."""
    t = Brief(lease_s=10, attempts=2)
    one, two, three = t.split(t.goal.id, *leaves(3))
    claim = t.claim(one, EVA)
    t.release(claim, failed=False)
    claim = t.claim(one, FRED, prior=claim)
    t.release(claim)
    claim = t.claim(one, DORA, prior=claim)
    t.release(claim, at=t.now + 20)
    t.release(claim, at=t.now - 10, failed=False)
    claim = t.claim(two, EVA, at=1000)
    t.claim(two, FRED, at=1000 + 10 * SECOND, prior=claim)
    t.release(claim, at=1000 + 11 * SECOND, failed=False)
    for who in (EVA, FRED) * 32:
        claim = t.claim(three, who, prior=claim if claim.body.task == three else None)
        t.release(claim, failed=False)
    for failed in (True, False):
        claim = t.claim(three, DORA, prior=claim)
        t.release(claim, failed=failed)
    return t.ops


def at_once() -> list[Op]:
    """Claims of one instant: a lot decides that differs from task to task."""
    t = Brief()
    for task in t.split(t.goal.id, *leaves(3)):
        for who in (EVA, FRED):
            t.claim(task, who, at=50)
    return t.ops


def failing() -> list[Op]:
    """After `attempts` releases a task has failed; a retry opens it; a result of a claim before the retry is void."""
    t = Brief(attempts=2)
    one, two = t.split(t.goal.id, *leaves(2))
    claim = t.claim(one, EVA)
    t.release(claim)
    again = t.claim(one, FRED, prior=claim)
    t.release(again)
    t.claim(one, DORA, prior=again)
    claim = t.claim(two, EVA)
    t.release(claim)
    again = t.claim(two, FRED, prior=claim)
    t.release(again)
    t.steer(Retry(two))
    t.finish(again)
    t.claim(two, DORA, prior=again)
    return t.ops


def results() -> list[Op]:
    """Done stays done: a result counts if its claim does, holder or not; the earliest is the task's."""
    t = Brief()
    one, two = t.split(t.goal.id, *leaves(2))
    late = t.claim(one, EVA, at=30)
    t.finish(late, at=50)
    early = t.claim(one, FRED, at=20)
    t.finish(early, at=60)
    claim = t.claim(two, EVA, at=70)
    t.release(claim, at=80)
    t.finish(claim, at=90)
    t.finish(claim, at=85)
    t.say(FRED, Result(claim.id, "not mine"), at=81)
    t.say(FRED, Release(claim.id), at=71)
    return t.ops


def redone() -> list[Op]:
    """A retry undoes a task and what used its result; both can be claimed again."""
    t = Brief()
    one, two = t.split(t.goal.id, Step("one", atomic=True), Step("two", atomic=True, after=(0,)))
    t.do(one)
    t.do(two)
    t.steer(Retry(one))
    t.do(one, FRED)
    t.claim(two, FRED)
    return t.ops


def back_dated() -> list[Op]:
    """What is said to be earlier than what it refers to is inert; a claim must be later than its split was accepted."""
    t = Tale()
    # An id so low that among ops of its hlc it stands first.
    bodies = (Proposal(t.goal.id, leaves(2), angle=str(n)) for n in range(1000))
    body = next(body for body in bodies if seal(ADA, t.goal.id, 0, START + 100 * MS, body).id < b"\x04")
    draft = t.say(ADA, body, at=100)
    t.say(BOB, Vote(draft.id, True, MARKS), at=99)
    t.say(CLEO, Vote(draft.id, True, MARKS), at=100)
    t.say(DORA, Vote(draft.id, True, MARKS), at=120)
    t.say(EVA, Vote(draft.id, True, MARKS), at=121)
    one, two = children(draft)
    t.steer(Note(one, "as early as the task"), at=100)
    t.claim(one, EVA, at=121)  # as early as its acceptance
    claim = t.claim(one, FRED, at=110)  # later than the draft, earlier than its acceptance
    t.finish(claim, at=200)
    claim = t.claim(two, FRED, at=121.5)
    t.say(FRED, Result(claim.id, "early"), at=121)
    t.say(ADA, Proposal(t.goal.id, leaves(2)), at=0)
    t.steer(Pause(True), at=0)
    return t.ops


def references() -> list[Op]:
    """What refers to something that isn't there, is of the wrong kind or task, or is another's, is held but inert."""
    t = Brief()
    draft = t.draft()
    t.approve(draft)
    one, two = children(draft)
    claim = t.claim(one)
    t.claim(two, FRED, prior=claim)
    t.say(ADA, Proposal(one, leaves(2), base=draft.id))
    t.say(ADA, Proposal(t.goal.id, leaves(2), base=draft.id))
    t.say(ADA, Vote(claim.id, True, MARKS))
    t.say(ADA, Vote(missing(), True, MARKS))
    t.say(ADA, Claim(missing(1)))
    t.say(ADA, Claim(draft.id))
    t.say(ADA, Result(draft.id, "x"))
    t.steer(Note(one, "mind the gap"))
    t.steer(Note(missing(), "mind the gap"))
    t.steer(Pause(True), who=ADA)
    return t.ops


def equivocation() -> list[Op]:
    """Ops in one slot all count, their author is faulty: nothing is undone by what else bears its number."""
    t = Brief(lease_s=10)
    draft = t.draft()
    t.approve(draft)
    one, two = children(draft)
    claims = [t.claim(task, who) for task, who in ((one, EVA), (two, FRED))]
    for claim, other in zip(claims, (two, one), strict=True):
        who = EVA if claim is claims[0] else FRED
        for n in range(3):
            t.say(who, Claim(other), at=40 + n, seq=claim.seq)
    for n in range(3):
        t.say(ADA, Proposal(t.goal.id, leaves(2), f"{n}"), at=50 + n, seq=draft.seq)
    t.finish(claims[0])
    # Of policies the 64 lowest by seq and id count; of drafts eight, too.
    for n in range(66):
        t.say(OPERATOR, Steer(SetPolicy(Policy(1, 1, attempts=1 + n))), at=100 + n, seq=1)
    t.say(OPERATOR, Steer(Pause(True)), at=170, seq=0)
    for n in range(9):
        t.say(CLEO, Proposal(two, leaves(2), f"{n}"), at=60 + n, seq=1)
    return t.ops


def later_versions() -> list[Op]:
    """Kinds, acts and fields of a later version: held, passed on, and what isn't known of them means nothing."""
    t = Tale()
    plan, hlc = t.goal.id, START + (50 << 16)
    t.ops.append(foreign(ADA, plan, 0, hlc, {"kind": "song", "notes": [1, True, b"x", {"loud": ["x", -5, 1 << 63]}]}))
    t.ops.append(foreign(OPERATOR, plan, 1, hlc, {"kind": "steer", "act": {"act": "dance", "task": plan}}))
    body = {"mood": ["fine"], "kind": "proposal", "task": plan}
    body["steps"] = [{"title": "a", "atomic": True, "colour": "red"}, {"title": "b"}]  # type: ignore[assignment]
    t.ops.append(foreign(BOB, plan, 0, hlc, body))
    t.replica.add(t.ops[-1])
    t.approve(t.ops[-1], CLEO, DORA, at=60)
    return t.ops


def unknown_plan() -> list[Op]:
    """Ops of a plan whose goal isn't known aren't held and not in the fingerprint."""
    t, hidden = Tale(), Tale(need=1)
    t.split()
    hidden.split()
    return t.ops + hidden.ops[1:]


def synthesis() -> list[Op]:
    """Synthesis of all: each branch is merged when its children are done. Switched on later it undoes no branch."""
    t = Brief(synthesis="none", max_depth=2)
    one, two = t.split(t.goal.id, Step("one"), Step("two"))
    for task in t.split(one, *leaves(2)):
        t.do(task)
    t.steer(SetPolicy(Policy(need=1, max_depth=2, synthesis="all")))
    for task in t.split(two, *leaves(2)):
        t.claim(two, FRED)  # too early: its children aren't all done
        t.do(task)
    t.claim(one)  # done before: not merged
    t.do(two)
    t.claim(t.goal.id)
    return t.ops


def deeper() -> list[Op]:
    """max_depth raised later: a leaf with a result stays one, another wants a split."""
    t = Brief(max_depth=1)
    one, two, three = t.split(t.goal.id, Step("one"), Step("two"), Step("three"))
    t.do(one)
    t.claim(two)
    t.steer(SetPolicy(Policy(need=1, max_depth=2, synthesis="none")))
    claim = t.claim(three)  # it wasn't a leaf any more
    t.finish(claim)
    t.split(two, *leaves(2))
    return t.ops


def shallower() -> list[Op]:
    """max_depth lowered later: what was split stays split, the rest are leaves."""
    t = Brief(max_depth=2)
    t.split(t.split(t.goal.id, Step("one"), Step("two"))[0], *leaves(2))
    t.steer(SetPolicy(Policy(need=1, max_depth=1, synthesis="none")))
    return t.ops


def deepest() -> list[Op]:
    """Nothing splits a task at depth 8, not even a pick."""
    t = Tale(need=1, max_depth=8)
    task = t.goal.id
    for _ in range(9):
        draft = t.draft(task, Step("a"), Step("b"))
        t.steer(Pick(draft.id))
        task = children(draft)[0]
    return t.ops


def pauses() -> list[Op]:
    """Paused is what the operator's latest pause says."""
    t = Tale()
    t.steer(Pause(True), at=30)
    t.steer(Pause(False), at=20)
    return t.ops


ALL: tuple[Callable[[], list[Op]], ...] = (
    whole,
    goals,
    first_approval,
    two_accepted,
    accepted_together,
    closed_list,
    policies,
    words,
    atomic,
    drafts,
    waiting,
    chain,
    given_back,
    at_once,
    failing,
    results,
    redone,
    back_dated,
    references,
    equivocation,
    later_versions,
    unknown_plan,
    synthesis,
    deeper,
    shallower,
    deepest,
    pauses,
)
