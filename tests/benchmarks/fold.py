"""How fast ops become a picture: the fold, its growth with the plan's size, and all the way from the wire.

    python tests/benchmarks/fold.py [OPS]

Prints rates in ops per second and ratios; ratios within one run are what to compare between machines.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from swarmtui.plan.envelope import SIGNED_PREFIX, Identity, open_op, seal, task_id, to_wire, verify_key
from swarmtui.plan.ops import Body, Claim, Goal, Marks, Op, OpId, Policy, Proposal, Result, Step, TaskId, Vote
from swarmtui.plan.replica import Replica
from swarmtui.swarm.door import COLLECTOR

FAN_OUT, LEVELS = 8, 5
TEXT = "Compare the fares of three airlines for the second half of May and note the luggage rules of each. "
CREW = [Identity.from_seed(bytes([i]) * 32) for i in range(1, 12)]
OPERATOR, DRAFTERS, SCORERS, EXECUTORS = CREW[0], CREW[1:3], CREW[3:6], CREW[6:]


class Author:
    """Says one op after another."""

    def __init__(self) -> None:
        self.hlc = 1_700_000_000_000 << 16
        self.seqs: dict[str, int] = {}
        self.plan: OpId = b""

    def say(self, who: Identity, body: Body) -> Op:
        self.hlc += 1 << 16
        seq = self.seqs.get(who.peer_id, 0)
        self.seqs[who.peer_id] = seq + 1
        return seal(who, self.plan, seq, self.hlc, body)


def history() -> Iterator[Op]:
    """A plan that is worked off depth first, so that every stretch of it holds about the same mix of ops."""
    author = Author()
    goal = author.say(OPERATOR, Goal("A big plan", TEXT * 5, Policy(max_depth=LEVELS, synthesis="none")))
    author.plan = goal.id
    yield goal
    yield from _branch(author, goal.id, 0)


def _branch(author: Author, task: TaskId, depth: int) -> Iterator[Op]:
    if depth == LEVELS:
        who = EXECUTORS[author.hlc % len(EXECUTORS)]
        claim = author.say(who, Claim(task))
        yield claim
        yield author.say(who, Result(claim.id, TEXT * 6))
        return
    drafts = []
    for who in DRAFTERS:
        steps = tuple(Step(TEXT[: 40 + i], TEXT, after=(i - 1,) if i % 3 == 2 else ()) for i in range(FAN_OUT))
        drafts.append(author.say(who, Proposal(task, steps, TEXT * 2, "by place")))
        yield drafts[-1]
    for who in SCORERS:
        for i, draft in enumerate(drafts):
            yield author.say(who, Vote(draft.id, i == 0, Marks(60, 70, 80), TEXT))
    for i in range(FAN_OUT):
        yield from _branch(author, task_id(drafts[0].id, i), depth + 1)


def rates(rounds: int, **runs: tuple[int, Callable[[], object]]) -> dict[str, float]:
    """The best of several rounds, in things per second of this process's CPU time. Rounds take turns, so that a machine
    that slows down meanwhile slows all down."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, (count, run) in runs.items():
            gc.collect()
            start = time.process_time()
            run()
            best[name] = max(best.get(name, 0.0), count / (time.process_time() - start))
    return best


def add_singly(ops: Sequence[Op]) -> Replica:
    replica = Replica(author_budget=1 << 40, total_budget=1 << 40)
    for op in ops:
        replica.add(op)
    return replica


def from_wire(wires: Sequence[bytes]) -> None:
    replica = Replica()
    for wire in wires:
        replica.add(open_op(wire))


def bare_verify(ops: Sequence[Op]) -> None:
    for op in ops:
        verify_key(op.author).verify(SIGNED_PREFIX + op.payload, op.signature)


def main() -> None:
    gc.set_threshold(*COLLECTOR)  # as the program does
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    ops = [op for op, _ in zip(history(), range(wanted), strict=False)]
    some, few = ops[:1_000], ops[:2_000]
    wires = [to_wire(op) for op in few]
    fold = rates(5, small=(len(some), lambda: add_singly(some)), large=(len(ops), lambda: add_singly(ops)))
    gc.disable()
    bare_fold = rates(3, small=(len(some), lambda: add_singly(some)), large=(len(ops), lambda: add_singly(ops)))
    gc.enable()
    fold |= rates(2, batch=(len(ops), lambda: Replica(1 << 40, 1 << 40).add_many(ops)))
    wire = rates(
        9,
        bare=(len(few), lambda: bare_verify(few)),
        opened=(len(few), lambda: [open_op(wire) for wire in wires]),
        whole=(len(few), lambda: from_wire(wires)),
    )
    ratio, bare_ratio = fold["small"] / fold["large"], bare_fold["small"] / bare_fold["large"]
    print(f"fold, {len(some):,} ops           {fold['small']:10,.0f} ops/s")
    print(
        f"fold, {len(ops):,} ops         {fold['large']:10,.0f} ops/s   cost per op {ratio:.2f} x that of {len(some):,}"
    )
    print(f"   without Python's garbage collector {bare_fold['large']:,.0f} ops/s, {bare_ratio:.2f} x")
    print(f"fold, all in one batch     {fold['batch']:10,.0f} ops/s")
    print(f"bare PyNaCl verification   {wire['bare']:10,.0f} ops/s")
    print(f"open_op                    {wire['opened']:10,.0f} ops/s   {wire['opened'] / wire['bare']:.0%} of bare")
    print(f"open_op and add            {wire['whole']:10,.0f} ops/s   {wire['whole'] / wire['bare']:.0%} of bare")


if __name__ == "__main__":
    main()
