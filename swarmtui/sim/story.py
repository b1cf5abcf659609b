"""The story of a run, for whoever looks for the cause of a fault: who did what, what went wrong when, what it came to.

Presences, requests and ops that were said before are left out (the whole trace has them). What it came to (“→”) is what
somebody sees who hears at once all that anybody says, also what is told to one alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from swarmtui.peer.frames import take_apart
from swarmtui.plan.ops import (
    Claim,
    Goal,
    InvalidOp,
    Note,
    Op,
    OpId,
    Pause,
    Pick,
    Proposal,
    Release,
    Result,
    Retry,
    SetPolicy,
    Steer,
    TaskId,
    Veto,
    Vote,
)
from swarmtui.plan.replica import Replica
from swarmtui.plan.state import State, Task

from .member import EPOCH_MS, identity_of
from .scenario import Crash, Cut, Jump, Leave, Member, Said, Scenario, Steering, Stop, Weather
from .trace import Opened

MANY = 3
"""Of one kind in one frame, more are only counted."""
SKEWED_S = 5.0
TITLE = 40


class Look(NamedTuple):
    """What is told of a task when it changes."""

    state: State = State.SUPERSEDED
    winner: Op | None = None
    holder: Op | None = None
    result: Op | None = None

    @classmethod
    def at(cls, task: Task) -> Look:
        if not task.live:
            return cls()
        return cls(task.state, task.winner.op if task.winner is not None else None, task.holder, task.result)


class Story:
    """Tells a run in plain sentences (a :class:`swarmtui.sim.trace.Teller`).

    Args:
        scenario: what is told.
        show: called with each line.
    """

    def __init__(self, scenario: Scenario, show: Callable[[str], None]) -> None:
        self._show = show
        self._scenario = scenario
        self._numbers = {identity_of(scenario.seed, n).peer_id: n for n in range(len(scenario.members))}
        self._replica = Replica()
        self._seen: dict[OpId, Op] = {}
        self._slots: set[tuple[OpId, str, int]] = set()
        self._was: dict[TaskId, Look] = {}

    def begin(self) -> None:
        """Say who is there and what the plan's policy is."""
        for number, member in enumerate(self._scenario.members):
            self._show(f"{self.name(number):16} {_described(member)}")
        policy = self._scenario.policy
        only = ", these alone" if policy.scorers else ""
        self._show(
            f"{'policy':16} {policy.need} of {policy.of} scorers{only}; {policy.rivals} rivals, "
            f"{policy.rounds} rounds, depth {policy.max_depth}, lease {policy.lease_s} s, "
            f"patience {policy.patience_s} s, {policy.attempts} attempts, synthesis {policy.synthesis}"
        )

    def name(self, number: int) -> str:
        """A member's name."""
        return f"{self._scenario.members[number].role} {number}" if number >= 0 else "nobody"

    # --- what is told of

    def note(self, at: float, member: int, what: str, detail: str) -> None:
        if not what.startswith("asks "):
            who = f"{self.name(member)} " if member >= 0 else ""
            self._line(at, "", f"{who}{what}{f' ({detail})' if detail else ''}")

    def fault(self, at: float, what: object) -> None:
        self._line(at, "!", self._fault(what))

    def frame(self, at: float, member: int, data: bytes, opened: Opened) -> None:
        ops = self._new(data, opened)
        if not ops:
            return
        counted = Counter(_kind(op) for op in ops)
        for kind, count in counted.items():
            if count > MANY:
                self._line(at, "", f"{self.name(member)} says {count} times: {kind}")
        for op in ops:
            changes = self._replica.add(op)
            if counted[_kind(op)] <= MANY:
                self._line(at, "", self._sentence(op, member, at))
            for plan, task in sorted(changes.tasks):
                self._tell_change(at, self._replica.plans[plan].tasks[task])

    def _new(self, data: bytes, opened: Opened) -> list[Op]:
        """Ops that nobody has said before, of a frame that may be garbage."""
        try:
            ops = [opened(bytes(wire)) for wire in take_apart(data).ops]
        except (InvalidOp, ValueError):
            return []
        new = [op for op in ops if op.id not in self._seen]
        self._seen.update((op.id, op) for op in new)
        return new

    # --- in words

    def _line(self, at: float, mark: str, text: str) -> None:
        self._show(f"{at:9.2f} {mark:1} {text}")

    def _who(self, peer: str) -> str:
        return self.name(self._numbers[peer]) if peer in self._numbers else f"stranger {peer[-6:]}"

    def _sentence(self, op: Op, member: int, at: float) -> str:
        """Who says what, and what's odd about it."""
        odd = []
        slot = (op.plan, op.author, op.seq)
        if slot in self._slots:
            odd.append(f"a second op with its number {op.seq}")
        self._slots.add(slot)
        ahead = (op.hlc >> 16) / 1000 - EPOCH_MS / 1000 - at
        if abs(ahead) > SKEWED_S:
            odd.append(f"dated {abs(ahead):.0f} s {'ahead' if ahead > 0 else 'back'}")
        if self._numbers.get(op.author) != member:
            odd.append(f"told by {self.name(member)}")
        aside = f" ({'; '.join(odd)})" if odd else ""
        return f"{self._who(op.author)} {self._said(op)}{aside}"

    def _said(self, op: Op) -> str:
        match op.body:
            case Goal(title):
                return f"gives the goal “{title}”"
            case Proposal(task, steps, base=base):
                better = f", better than {_short(base)}" if base else ""
                return f"drafts {_short(op.id)} of {self._task(task)}: {len(steps)} steps{better}"
            case Vote(proposal, approve):
                return f"{'approves' if approve else 'rejects'} {self._draft(proposal)}"
            case Claim(task, prior):
                after = f" after {self._claimer(prior)}" if prior else ""
                return f"claims {self._task(task)}{after}"
            case Release(claim, reason):
                return f"releases {self._claimed(claim)}{f': {reason[:TITLE]}' if reason else ''}"
            case Result(claim):
                return f"has done {self._claimed(claim)}"
            case Steer(act):
                return self._act(act)
        return f"says something unknown ({_kind(op)})"

    def _act(self, act: object) -> str:
        match act:
            case Pick(proposal):
                return f"picks {self._draft(proposal)}"
            case Veto(proposal):
                return f"vetoes {self._draft(proposal)}"
            case Retry(task):
                return f"wants {self._task(task)} done again"
            case Note(task):
                return f"notes something on {self._task(task)}"
            case Pause(on):
                return "pauses the plan" if on else "lets the plan go on"
            case SetPolicy(policy):
                return f"sets the policy: {policy.need} of {policy.of}, synthesis {policy.synthesis}"
        return "steers in an unknown way"

    def _task(self, task: TaskId) -> str:
        for plan in self._replica.plans.values():
            if task in plan.tasks:
                return f"“{plan.tasks[task].title[:TITLE]}”"
        return f"a task that isn't known ({_short(task)})"

    def _draft(self, proposal: OpId) -> str:
        op = self._seen.get(proposal)
        if op is None or not isinstance(op.body, Proposal):
            return f"a draft that isn't known ({_short(proposal)})"
        return f"{_short(proposal)} of {self._task(op.body.task)}"

    def _claimed(self, claim: OpId) -> str:
        op = self._seen.get(claim)
        if op is None or not isinstance(op.body, Claim):
            return f"a claim that isn't known ({_short(claim)})"
        return self._task(op.body.task)

    def _claimer(self, claim: OpId) -> str:
        op = self._seen.get(claim)
        return self._who(op.author) if op is not None else f"a claim that isn't known ({_short(claim)})"

    def _tell_change(self, at: float, task: Task) -> None:
        """What became of a task, if it's worth a line."""
        was, now = self._was.get(task.id, Look()), Look.at(task)
        self._was[task.id] = now
        told = []
        if now.winner is not was.winner:
            draft = now.winner
            told.append(
                f"is split by {_short(draft.id)} of {self._who(draft.author)}" if draft else "isn't split any more"
            )
            told[-1] += f" (before: by {_short(was.winner.id)})" if was.winner else ""
        if now.state is not was.state and now.state in (State.READY, State.WAITING, State.FAILED):
            told.append(f"is {now.state.value}")
        if now.holder is not was.holder and now.holder is not None:
            told.append(f"is held by {self._who(now.holder.author)}")
        if now.result is not was.result and now.result is not None:
            told.append(f"is done by {self._who(now.result.author)}")
        elif now.state is State.DONE and was.state is not State.DONE:
            told.append("is done")
        elif was.state is State.DONE and now.state is not State.DONE:
            told.append(f"isn't done any more: {now.state.value}")
        for each in told:
            self._line(at, "→", f"“{task.title[:TITLE]}” {each}")

    def _fault(self, fault: object) -> str:
        match fault:
            case Weather():
                parts = [
                    f"{fault.loss:.0%} are lost" if fault.loss else "",
                    f"{fault.duplicate:.0%} come twice" if fault.duplicate else "",
                    f"{fault.reorder:.0%} are overtaken" if fault.reorder else "",
                    f"delay {fault.delay[0]:g} to {fault.delay[1]:g} s",
                ]
                return f"weather until {fault.until:g} s: {', '.join(part for part in parts if part)}"
            case Cut():
                return f"partition until {fault.until:g} s: {fault.shape}"
            case Crash():
                back = "for good" if fault.back_s is None else f"for {fault.back_s:g} s"
                return f"{self.name(fault.member)} is killed {back}{_when(fault.when)}"
            case Stop():
                return f"{self.name(fault.member)} is stopped for {fault.for_s:g} s{_when(fault.when)}"
            case Leave():
                return f"{self.name(fault.member)} leaves"
            case Jump():
                return f"{self.name(fault.member)}'s clock jumps by {fault.ms / 1000:+g} s"
            case Steering():
                return f"the operator decides something: {fault.act}"
        return repr(fault)


def _described(member: Member) -> str:
    parts = [f"from {member.joins_s:g} s"]
    if member.skew_ms:
        parts.append(f"clock {member.skew_ms / 1000:+g} s")
    if member.slow != 1:
        parts.append(f"model {member.slow:g} times slower")
    if member.fails:
        parts.append(f"model fails in {member.fails:.0%}")
    if member.tricks:
        parts.append(f"tricks every {member.every_s:g} s: {', '.join(member.tricks)}")
    return ", ".join(parts)


def _when(when: float | Said) -> str:
    if not isinstance(when, Said):
        return ""
    then = f", {when.then_s:g} s later" if when.then_s else ""
    return f" (at its {when.kind} no. {when.nth + 1}, {when.point}{then})"


def _short(op_id: OpId) -> str:
    return op_id.hex()[:6]


def _kind(op: Op) -> str:
    body = op.body
    return type(body.act if isinstance(body, Steer) else body).__name__.lower()
