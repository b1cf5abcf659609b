"""What peers may say: the ops, their fields and their limits (docs/protocol.md, section 2).

An op is one signed statement. Its payload is a MessagePack map; the `body` is a union that is told apart by its `kind`
(and a `steer` by its `act`). Limits stand in the types, so that decoding checks them; what a type can't say is in
:func:`check`. Everything here is data: nothing is signed, stored or interpreted.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

OpId: TypeAlias = bytes
"""SHA-256 of an op's payload, 32 bytes."""
TaskId: TypeAlias = bytes
"""The goal's op id for the root, else SHA-256(proposal id, step index as one byte), 32 bytes."""
PeerId: TypeAlias = str
"""A libp2p peer id in base58, which carries the Ed25519 public key."""
Hlc: TypeAlias = int
"""Hybrid logical clock: unix milliseconds << 16 | counter."""

VERSION = 1
MAX_OP_BYTES = 64 * 1024
MAX_TITLE = 200
MAX_TEXT = 4_000
MAX_OUTPUT = 32_000
MIN_STEPS, MAX_STEPS = 2, 16
MAX_DEPTH = 8
MAX_PROPOSALS_PER_AUTHOR = 8
MAX_SEQ = 65_535
DEFAULT_SKILL = "write"

Id32 = Annotated[bytes, Meta(min_length=32, max_length=32)]
Title = Annotated[str, Meta(min_length=1, max_length=MAX_TITLE)]
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Output = Annotated[str, Meta(min_length=1, max_length=MAX_OUTPUT)]
Skill = Annotated[str, Meta(min_length=1, max_length=40)]
Mark = Annotated[int, Meta(ge=0, le=100)]


class Part(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A piece of a body. Defaults are left out on the wire; fields that a later version adds are ignored."""


class Policy(Part, frozen=True):
    """How a plan is decided. Stands in the goal; a later `steer policy` replaces it whole.

    The counts are what peers check; settings in seconds and milliseconds steer agents and the leases of claims.
    """

    need: Annotated[int, Meta(ge=1, le=1000)] = 2
    """Approvals that accept a draft."""
    of: Annotated[int, Meta(ge=1, le=1000)] = 3
    """How many scorers the quorum was reckoned from (shown, never counted)."""
    scorers: Annotated[tuple[PeerId, ...], Meta(max_length=1000)] = ()
    """The only peers whose approvals count; empty: anyone in the swarm."""
    rivals: Annotated[int, Meta(ge=1, le=8)] = 2
    """Drafts wanted per task."""
    rounds: Annotated[int, Meta(ge=0, le=8)] = 2
    """Refinements before scorers settle."""
    fan_out: Annotated[tuple[int, int], Meta()] = (2, 6)
    """Fewest and most steps that a draft should have."""
    max_depth: Annotated[int, Meta(ge=1, le=MAX_DEPTH)] = 3
    """Tasks at this depth are leaves (the root stands at 0)."""
    pass_mark: Mark = 60
    patience_s: Annotated[int, Meta(ge=1, le=86_400)] = 120
    """After so long without a winner scorers settle for the best draft."""
    lease_s: Annotated[int, Meta(ge=1, le=86_400)] = 60
    """A silent holder may be taken over after so long."""
    attempts: Annotated[int, Meta(ge=1, le=100)] = 3
    """Failures after which a task has failed."""
    settle_ms: Annotated[int, Meta(ge=0, le=60_000)] = 1_000
    """The least time between an executor's claim and its result."""
    skills: Annotated[tuple[Skill, ...], Meta(max_length=32)] = (DEFAULT_SKILL,)
    """What steps may need."""
    synthesis: Annotated[str, Meta(pattern=r"\A(none|root|all)\Z")] = "root"
    """Which branches get their children's results merged into one."""


class Step(Part, frozen=True):
    """One step of a draft; it becomes a task when the draft is accepted."""

    title: Title
    detail: Text = ""
    atomic: bool = False
    """One executor can finish it in one go."""
    needs: Skill = DEFAULT_SKILL
    after: Annotated[tuple[int, ...], Meta(max_length=MAX_STEPS)] = ()
    """Indexes of earlier steps whose results it needs."""


class Marks(Part, frozen=True):
    """A scorer's marks for a draft, 0 to 100 each."""

    specific: Mark
    distinct: Mark
    complete: Mark

    @property
    def mean(self) -> float:
        """The mean of the three marks, 0 to 100."""
        return (self.specific + self.distinct + self.complete) / 3


class Body(Part, tag_field="kind", frozen=True):
    """What an op says."""


class Goal(Body, tag="goal", frozen=True):
    """A new plan exists."""

    title: Title
    detail: Text = ""
    policy: Policy = Policy()
    nonce: Annotated[bytes, Meta(max_length=32)] = b""
    """Makes the same goal, given twice, two plans."""


class Proposal(Body, tag="proposal", frozen=True):
    """A draft split of a task."""

    task: Id32
    steps: Annotated[tuple[Step, ...], Meta(min_length=MIN_STEPS, max_length=MAX_STEPS)]
    rationale: Text = ""
    angle: Annotated[str, Meta(max_length=MAX_TITLE)] = ""
    base: Annotated[bytes, Meta(max_length=32)] = b""
    """The proposal that this one refines; empty: a fresh draft."""


class Vote(Body, tag="vote", frozen=True):
    """A scorer's verdict on a draft."""

    proposal: Id32
    approve: bool
    marks: Marks
    critique: Text = ""


class Claim(Body, tag="claim", frozen=True):
    """I'll do this task."""

    task: Id32
    prior: Annotated[bytes, Meta(max_length=32)] = b""
    """The claim that this one takes over; empty: a first claim."""


class Release(Body, tag="release", frozen=True):
    """I can't or won't do what I claimed."""

    claim: Id32
    reason: Text = ""
    failed: bool = True
    """An attempt has failed; False: the work is only given back, as its executor leaves, is paused or has no model."""


class Result(Body, tag="result", frozen=True):
    """Here's the work."""

    claim: Id32
    output: Output


class Act(Part, tag_field="act", frozen=True):
    """What the operator decides."""


class SetPolicy(Act, tag="policy", frozen=True):
    """Replaces the policy whole, from this op's hlc on."""

    policy: Policy


class Pick(Act, tag="pick", frozen=True):
    """Accepts this draft, whatever the votes say."""

    proposal: Id32


class Veto(Act, tag="veto", frozen=True):
    """Rules this draft out."""

    proposal: Id32


class Retry(Act, tag="retry", frozen=True):
    """What was claimed and done for this task up to now doesn't count any more."""

    task: Id32


class Note(Act, tag="note", frozen=True):
    """A word to the agents about this task."""

    task: Id32
    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]


class Pause(Act, tag="pause", frozen=True):
    """Agents start nothing new on this plan while it's on."""

    on: bool


AnyAct: TypeAlias = SetPolicy | Pick | Veto | Retry | Note | Pause


class Steer(Body, tag="steer", frozen=True):
    """The operator's word. Counts only from the goal's author."""

    act: AnyAct


class Unknown(Body, tag="unknown", frozen=True):
    """A kind of body (or act) that this version doesn't know: kept and passed on, means nothing."""


AnyBody: TypeAlias = Goal | Proposal | Vote | Claim | Release | Result | Steer
"""The bodies that this version knows."""


class Payload(msgspec.Struct, frozen=True, gc=False):
    """The signed part of an op, as it travels."""

    v: int
    plan: Annotated[bytes, Meta(max_length=32)]
    author: Annotated[str, Meta(min_length=1, max_length=128)]
    seq: Annotated[int, Meta(ge=0, le=MAX_SEQ)]
    hlc: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    body: msgspec.Raw


class Op(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An op that was checked and decoded. Equal to another by identity; compare `id`s.

    `plan` is always filled: for a goal it's the goal's own id, though it travels empty.
    """

    id: OpId
    plan: OpId
    author: PeerId
    seq: int
    hlc: Hlc
    body: Body
    payload: bytes
    signature: bytes

    @property
    def order(self) -> tuple[Hlc, OpId]:
        """The one order among ops: earliest first, ties by id."""
        return (self.hlc, self.id)


class InvalidOp(ValueError):
    """An op is outside its limits, badly signed or undecodable: drop it, count it, never pass it on."""


def check(body: Body) -> None:
    """Check what the types can't say.

    Raises:
        InvalidOp: naming the rule that is broken.
    """
    if isinstance(body, Proposal):
        if body.base and len(body.base) != 32:
            raise InvalidOp("proposal.base is neither empty nor 32 bytes")
        for i, step in enumerate(body.steps):
            if any(not 0 <= j < i for j in step.after):
                raise InvalidOp(f"step {i} waits for a step that isn't before it")
            if not step.title.strip():
                raise InvalidOp(f"step {i} has a blank title")
    elif isinstance(body, Claim):
        if body.prior and len(body.prior) != 32:
            raise InvalidOp("claim.prior is neither empty nor 32 bytes")
    elif isinstance(body, Goal):
        if not body.title.strip():
            raise InvalidOp("the goal's title is blank")
        check_policy(body.policy)
    elif isinstance(body, Steer) and isinstance(body.act, SetPolicy):
        check_policy(body.act.policy)


QUORUMS = ("majority", "two-thirds", "all")
"""What people call the usual quorums."""


def need_of(quorum: str, scorers: int) -> int:
    """Return how many approvals one of `QUORUMS` means among so many scorers (at least 1)."""
    among = max(1, scorers)
    return {"majority": among // 2 + 1, "two-thirds": -(-2 * among // 3), "all": among}[quorum]


def check_policy(policy: Policy) -> None:
    """Check a policy's fields against each other.

    Raises:
        InvalidOp: naming the field.
    """
    low, high = policy.fan_out
    if not MIN_STEPS <= low <= high <= MAX_STEPS:
        raise InvalidOp(f"policy.fan_out {low}-{high} isn't within {MIN_STEPS}-{MAX_STEPS}")
    if policy.need > policy.of:
        raise InvalidOp(f"policy.need {policy.need} is more than policy.of {policy.of}")
