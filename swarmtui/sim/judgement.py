"""Judges a run by what has to hold (docs/protocol.md, section 9)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec
import trio

from swarmtui.peer.presence import MAX_PEERS
from swarmtui.peer.store import MAX_HELD
from swarmtui.plan.ops import Claim, Op, OpId, Result
from swarmtui.plan.replica import AUTHOR_BUDGET, TOTAL_BUDGET, Replica
from swarmtui.plan.state import State

from .member import kind_of
from .scenario import Crash, Cut, Data, Stop, Weather
from .structure import faults_of

if TYPE_CHECKING:
    from .member import Member
    from .world import World

Oracle = Callable[[list[Op]], dict[OpId, bytes]]
SLACK_S = 45.0
"""Added to lease and patience: the work itself, hesitation, presence's own slowness (silence shows after seconds)."""


class Violation(Data, frozen=True):
    """Something that has to hold and didn't."""

    rule: str
    """diverged, incomplete, double, stalled, error, spoke, seq, disk, memory, takeover, rest or structure."""
    what: str


class Outcome(Data, frozen=True):
    """What came of a run."""

    seed: int
    violations: tuple[Violation, ...] = ()
    digest: str = ""
    """The trace's hash."""
    virtual_s: float = 0.0
    peers: int = 0
    ops: int = 0
    tasks: int = 0
    """Live tasks with a result."""
    results: int = 0
    """Results said for them."""
    accepted: int = 0
    """Live tasks with a winner."""
    flipped: int = 0
    """Tasks that some honest peer ever showed with another winner than in the end."""
    finished_s: float = -1.0
    """From the healing until every plan was done; -1: never."""
    settled_s: float = -1.0
    rest_s: float = 0.0
    wait_s: float = 0.0
    takeovers: tuple[float, ...] = ()
    catchups: tuple[float, ...] = ()
    heard_alone: int = 0
    """Ops that some observer holds and no speaking peer: they told it alone, or lost it."""
    frames: int = 0
    bytes_out: int = 0
    events: int = 0

    @property
    def good(self) -> bool:
        return not self.violations


def with_errors(outcome: Outcome, lines: Iterable[str]) -> Outcome:
    """Add what was logged as an error."""
    logged = tuple(Violation(rule="error", what=line) for line in lines)
    return msgspec.structs.replace(outcome, violations=outcome.violations + logged)


def judge(world: World, oracle: Oracle | None) -> Outcome:
    """Look at every member at the end of a run."""
    scenario, book = world.scenario, world.book
    found: list[Violation] = []

    def wrong(rule: str, what: str) -> None:
        found.append(Violation(rule=rule, what=what))

    _judge_members(world, wrong)
    _judge_course(world, wrong)
    honest = world.honest()
    reference = next((one for one in honest if not one.silent), None)
    outcome = Outcome(
        seed=scenario.seed,
        virtual_s=trio.current_time(),
        digest=world.trace.digest,
        peers=len(scenario.members),
        finished_s=-1.0 if world.finished_s is None else world.finished_s,
        settled_s=-1.0 if world.settled_s is None else world.settled_s,
        rest_s=book.longest_rest,
        wait_s=book.longest_wait,
        takeovers=tuple(book.takeovers),
        catchups=tuple(world.catchups),
        events=world.trace.events,
    )
    if reference is not None:
        _judge_pictures(honest, reference, random.Random(scenario.seed), oracle, wrong)
        outcome = msgspec.structs.replace(outcome, **_figures(world, reference))
    return msgspec.structs.replace(outcome, violations=tuple(found))


Wrong = Callable[[str, str], None]


def _judge_members(world: World, wrong: Wrong) -> None:
    forgetful = _may_forget(world)
    faulty = {author for one in world.honest() for plan in one.peer.replica.plans.values() for author in plan.faulty}
    for number, member in world.members.items():
        name = f"member {number} ({member.spec.role})"
        for error in member.errors:
            wrong("disk" if "on disk" in error else "error", f"{name}: {error}")
        peer = member.peer
        if peer.counters.errors:
            wrong("error", f"{name} caught {peer.counters.errors} unforeseen errors")
        if member.silent and member.sent + member.traffic() + peer.said:
            wrong("spoke", f"{name} sent something")
        if member.identity.peer_id in faulty and number not in forgetful:
            wrong("seq", f"{name} used a sequence number twice")
        if peer.replica.weight > TOTAL_BUDGET or any(w > AUTHOR_BUDGET for w in peer.replica._weights.values()):
            wrong("memory", f"{name} holds more ops than its budget")
        if len(peer.held) > MAX_HELD or len(peer.presences) > MAX_PEERS:
            wrong("memory", f"{name} holds too many ops from the future, or presences")


def _may_forget(world: World) -> set[int]:
    """Members that can't know all that they said: they lost their journal, and whoever heard them was out of reach."""
    faults = world.scenario.faults
    out_of_reach = world.hostile or any(isinstance(fault, (Weather, Cut, Stop)) for fault in faults)
    crashes = [fault for fault in faults if isinstance(fault, Crash)]
    return {fault.member for fault in crashes if fault.disk != "kept" and (out_of_reach or len(crashes) > 1)}


def _judge_course(world: World, wrong: Wrong) -> None:
    scenario, book = world.scenario, world.book
    if world.finished_s is None:
        wrong("stalled", "; ".join(_undone(world)))
    if world.settled_s is None and world.all_same() and world.finished_s is not None:
        wrong("incomplete", f"members {world.incomplete()} don't see that they hold what the others hold")
    elif not world.all_same():
        wrong("diverged", "; ".join(_differing(world)))
    bound = scenario.policy.lease_s + scenario.policy.patience_s + SLACK_S
    if not scenario.of("hostile") and not scenario.ahead_s:
        if book.longest_wait > bound:
            wrong("takeover", f"a dead holder's task lay there for {book.longest_wait:.0f} s")
        if book.longest_rest > bound:
            wrong("rest", f"nothing moved for {book.longest_rest:.0f} s")


def _differing(world: World) -> list[str]:
    """What each member lacks of all that honest ones hold."""
    held = {op.id: op for one in world.honest() for op in one.peer.replica.ops()}
    lines = []
    for one in world.honest():
        lacking = sorted((op for op in held.values() if one.peer.replica.get(op.id) is None), key=lambda op: op.order)
        if lacking:
            first = lacking[0]
            author = world.ether.numbers.get(first.author, -1)
            said = f"first {kind_of(first.body)} {first.id.hex()[:8]} of member {author}"
            lines.append(f"member {one.number} ({one.spec.role}) lacks {len(lacking)} of {len(held)} ops, {said}")
    return lines


def _undone(world: World) -> list[str]:
    lines = []
    for plan_id in sorted(world.plans()):
        for member in world.honest():
            plan = member.peer.replica.plans.get(plan_id)
            if plan is None:
                lines.append(f"member {member.number} doesn't know plan {plan_id.hex()[:8]}")
            elif not plan.done:
                states = [
                    task.state.value for task in plan.tasks.values() if task.live and task.state is not State.DONE
                ]
                lines.append(f"member {member.number}: plan {plan_id.hex()[:8]} has {', '.join(sorted(states))}")
    lines += [f"nobody knows of “{goal}” any more" for goal in world.lost_goals()]
    return lines or ["plans weren't done in time (they were later)"]


def _judge_pictures(
    honest: list[Member], reference: Member, rng: random.Random, oracle: Oracle | None, wrong: Wrong
) -> None:
    """*Same set ⇒ same picture, bytes equal*; and one winner, one holder chain, one result per task."""
    replica = reference.peer.replica
    mine = _pictures(replica)
    for member in honest:
        theirs = member.peer.replica
        if theirs.fingerprint != replica.fingerprint:
            continue  # told already, as not settled
        if _pictures(theirs) != mine:
            wrong("diverged", f"members {reference.number} and {member.number} hold the same and show different plans")
            double = sum(
                _result(task) != _result(plan.tasks.get(task_id))
                for plan_id, plan in theirs.plans.items()
                for task_id, task in replica.plans[plan_id].tasks.items()
            )
            if double:
                wrong("double", f"{double} tasks have another result at member {member.number}")
    ops = list(replica.ops())
    rng.shuffle(ops)
    again = Replica()
    for op in ops:
        again.add(op)
    if _pictures(again) != mine:
        wrong("diverged", "the same ops in another order show different plans")
    if oracle is not None and oracle(ops) != mine:
        wrong("structure", "the oracle sees another plan")
    for plan in replica.plans.values():
        for fault in faults_of(plan, ops):
            wrong("structure", fault)


def _result(task: object) -> OpId | None:
    result = getattr(task, "result", None)
    return result.id if result is not None else None


def _pictures(replica: Replica) -> dict[OpId, bytes]:
    return {plan: replica.picture(plan) for plan in replica.plans}


def _figures(world: World, reference: Member) -> dict[str, int]:
    replica = reference.peer.replica
    live = [task for plan in replica.plans.values() for task in plan.tasks.values() if task.live]
    there = {task.id for task in live if task.result is not None}
    ops = list(replica.ops())
    of_claim = {op.id: op.body.task for op in ops if isinstance(op.body, Claim)}
    said = [op.body for op in ops if isinstance(op.body, Result)]
    accepted = [task for task in live if task.winner is not None]
    traffic = [world.ether.traffic(one.identity.peer_id) for one in world.members.values()]
    return {
        "ops": replica.count,
        "tasks": len(there),
        "results": sum(of_claim.get(body.claim) in there for body in said),
        "accepted": len(accepted),
        "flipped": sum(
            bool(world.book.winners.get((task.plan, task.id), set()) - {task.winner.op.id if task.winner else b""})
            for task in live
        ),
        "heard_alone": sum(
            world.heard_alone(one)
            for one in world.honest()
            if one.silent and one.peer.replica.fingerprint != replica.fingerprint
        ),
        "frames": sum(each.published + each.asked for each in traffic),
        "bytes_out": sum(each.bytes_out for each in traffic),
    }
