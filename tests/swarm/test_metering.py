"""What a run took and what it was good for."""

from __future__ import annotations

import msgspec
import trio

from swarmtui.llm.model import Cost, Likelihood, Reply, Request
from swarmtui.plan.ops import Claim, Proposal, Vote
from swarmtui.plan.state import Plan
from swarmtui.swarm.metering import Account, Meter, Metered
from tests.agents import making


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def new_plan() -> Plan:
    """A plan whose ops say that they are its."""
    plan = making.plan()
    root = plan.tasks.pop(plan.id)
    plan.op = msgspec.structs.replace(plan.op, id=plan.op.plan)
    root.id = root.plan = plan.id
    plan.tasks[plan.id] = root
    return plan


def spend(meter: Meter, agent: str, tokens: int, *, cancelled: bool = False) -> None:
    meter.charge(
        Cost(agent=agent, kind="draft", tokens_in=tokens + 40, tokens_cached=50, tokens_out=10, cancelled=cancelled)
    )


def test_only_the_time_with_something_to_do_since_the_goal_is_busy() -> None:
    clock = Clock()
    meter = Meter(clock)
    meter.asks(1)
    clock.now += 100
    meter.asks(-1)
    meter.goal()
    clock.now += 2
    for change, seconds in ((1, 3), (1, 3), (-1, 1), (-1, 1)):
        meter.asks(change)
        clock.now += seconds
    assert meter.busy_share == 7 / 10
    meter.asks(1)
    clock.now += 10
    assert meter.busy_share == 17 / 20, "also of a request that still runs"


def test_tokens_by_what_became_of_them() -> None:
    meter = Meter(Clock())
    ann, bob, eva = (Account(meter, name) for name in ("ann", "bob", "eva"))
    plan = new_plan()
    won, lost, late = (making.draft(plan, name, hlc=i) for i, name in enumerate(("ann", "bob", "cid"), 10))
    for name, tokens, account, draft in (("ann", 100, ann, won), ("bob", 60, bob, lost), ("bob", 30, bob, late)):
        spend(meter, name, tokens)
        account.said([draft.op])
    making.vote(won, "eva", 80, approve=True)
    making.vote(lost, "eva", 50)
    votes = [won.votes["eva"], lost.votes["eva"]]
    spend(meter, "eva", 40)
    eva.said(votes)
    (task, *_) = making.accept(plan, won)
    won.accepted_at = 60
    too_late = making.op(Vote(proposal=lost.op.id, approve=True, marks=votes[0].body.marks), "flo", 70)
    spend(meter, "flo", 8)
    meter.said("flo", [too_late])
    making.result(task, "Done.")
    assert task.result is not None
    spend(meter, "dan", 200)
    # The agent's own copy of the op: the plan that is asked at the end holds another.
    meter.said("dan", [making.op(Claim(task=task.id), "dan"), msgspec.structs.replace(task.result)])
    spend(meter, "ann", 5)
    ann.dropped()
    spend(meter, "ann", 7, cancelled=True)
    spend(meter, "ann", 50)
    found = meter.summary([plan])
    assert found["tokens_by_fate"] == {"used": 100 + 40 + 200 + 50, "rivals": 60, "unused": 30 + 8 + 5 + 7}
    assert found["unused_share"] == 0.1
    assert found["rivals_share"] == 0.12
    assert found["tokens_out"] == 90


def test_likelihoods_are_shared_so_a_late_vote_wastes_none() -> None:
    """Three scorers judge a draft; the one who was charged for the weighing comes too late for the quorum of two."""
    meter = Meter(Clock())
    plan = new_plan()
    won = making.draft(plan, "ann")
    making.vote(won, "eva", 80, approve=True)
    making.accept(plan, won)
    won.accepted_at = 55
    late = making.op(Vote(proposal=won.op.id, approve=True, marks=won.votes["eva"].body.marks), "flo", 70)
    meter.charge(Cost(agent="flo", kind="likelihood", tokens_in=100))
    meter.charge(Cost(agent="flo", kind="judge", tokens_out=20))
    meter.said("flo", [late])
    assert meter.summary([plan])["tokens_by_fate"] == {"used": 100, "rivals": 0, "unused": 20}


def test_a_draft_that_the_winner_refines_was_of_use() -> None:
    meter = Meter(Clock())
    plan = new_plan()
    base = making.draft(plan, "ann")
    refined = making.draft(plan, "bob", hlc=20, base=base.op.id)
    spend(meter, "ann", 10)
    meter.said("ann", [base.op])
    making.accept(plan, refined)
    assert meter.summary([plan])["unused_share"] == 0


def test_an_op_that_nobody_holds_was_of_no_use() -> None:
    meter = Meter(Clock())
    plan = new_plan()
    spend(meter, "ann", 10)
    meter.said("ann", [making.op(Proposal(task=plan.root.id, steps=()), "ann")])
    assert meter.summary([plan])["unused_share"] == 1
    assert meter.summary([])["unused_share"] == 1


class Slow:
    """Answers when it's let."""

    name = "slow"

    def __init__(self) -> None:
        self.go = trio.Event()

    async def generate(self, request: Request, on_text: object = None) -> Reply:
        await self.go.wait()
        return Reply(text="", tokens_in=10, tokens_cached=4, tokens_out=2)

    async def likelihood(self, request: Likelihood) -> list[float]:
        await self.go.wait()
        return []


async def test_a_model_that_tells_no_costs_is_charged_by_its_answers() -> None:
    meter, slow = Meter(), Slow()
    model = Metered(slow, meter)
    request = Request(agent="ann", purpose="work", subject="", system="", prompt="")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(model.generate, request)
        nursery.start_soon(model.likelihood, Likelihood(agent="ann", prefix="", continuations=[]))
        with trio.move_on_after(0):
            await model.generate(request)
        slow.go.set()
    found = meter.summary([])
    assert found["calls"] == {"likelihood": 1, "work": 2}
    assert found["cancelled"] == 1
    assert (found["tokens_in"], found["tokens_cached"], found["tokens_out"]) == (10, 4, 2)
    assert found["tokens_by_fate"]["used"] == 8
