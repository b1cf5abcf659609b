"""What ops mean: small pure functions, each under the sentence of the protocol that it implements (section 3).

They know nothing of how a replica stores or finds things. Hlcs that are None stand for "not yet".
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from .ops import Hlc, Op, OpId, PeerId, Policy, TaskId
from .state import State

MAX_POLICIES = 64
"""Policy changes of one plan that count, besides the goal's: the ones with the lowest seq."""
MAX_GIVEN_BACK = 64
"""Releases of one chain that need be no failures: so that a chain, which anybody can make longer, has an end."""
MS = 1 << 16
"""A millisecond, in hlc units."""


class Term(NamedTuple):
    """A stretch of time with one policy, as far as decisions rest on it. It lasts until the next term's `since`."""

    since: Hlc
    need: int
    scorers: frozenset[PeerId]
    max_depth: int
    synthesis: str


# Plain tuples, that the garbage collector needn't look at again and again: there are many.
ClaimKey: TypeAlias = tuple[Hlc, bytes, OpId, Op]
"""(hlc, lot, id, op): a claim in the order in which claims of one task win."""
ResultKey: TypeAlias = tuple[Hlc, OpId, Hlc, Op]
"""(hlc, id, hlc of its claim, op): a result in the order in which results of one task win."""
ReleaseKey: TypeAlias = tuple[Hlc, OpId, bool]
"""(hlc, id, whether it says that an attempt has failed): a release; of one claim the first counts."""


class Hold(NamedTuple):
    """Who had and has a task."""

    chain: tuple[Op, ...]
    holder: Op | None
    releases: int
    """Those that count as attempts that failed."""


NO_HOLD = Hold((), None, 0)


def terms(goal: Op, policy: Policy, changes: Iterable[tuple[Hlc, OpId, Policy]]) -> tuple[Term, ...]:
    """*The policy in force at T is the latest policy op with hlc ≤ T*: of several with one hlc, the greatest id."""
    line = [_term(goal.hlc, policy)]
    for hlc, _, changed in sorted(changes, key=lambda change: change[:2]):
        term = _term(hlc, changed)
        if line[-1].since == hlc:
            line.pop()
        if not line or line[-1][1:] != term[1:]:
            line.append(term)
    return tuple(line)


def _term(since: Hlc, policy: Policy) -> Term:
    return Term(since, policy.need, frozenset(policy.scorers), policy.max_depth, policy.synthesis)


def in_force(line: Sequence[Term], at: Hlc) -> Term:
    """The term at a time (the first one, for a time before it)."""
    return line[max(0, bisect_right(line, at, key=lambda term: term.since) - 1)]


def accepted_at(tally: Sequence[tuple[Hlc, PeerId]], line: Sequence[Term], depth: int) -> Hlc | None:
    """*The earliest hlc T at which the approvals with hlc ≤ T reach `need` of the policy in force at T.*

    Approvals count only by scorers that the policy in force allows, and no quorum splits a task that stands at the
    max_depth in force. So a later policy can accept more but un-accepts nothing.

    Args:
        tally: each scorer's first approval, earliest first.
        line: the policies' terms, earliest first.
        depth: of the task that would be split.
    """
    if not tally:
        return None
    if len(line) == 1 and not line[0].scorers:  # nearly always
        return tally[line[0].need - 1][0] if len(tally) >= line[0].need and depth < line[0].max_depth else None
    for i, term in enumerate(line):
        if depth >= term.max_depth or len(tally) < term.need:
            continue
        end = line[i + 1].since if i + 1 < len(line) else None
        left = term.need
        for hlc, scorer in tally:
            if end is not None and hlc >= end:
                break
            if term.scorers and scorer not in term.scorers:
                continue
            left -= 1
            if left == 0:
                return max(hlc, term.since)
    return None


def wants_synthesis(latest: str, at_completion: str, is_root: bool) -> bool:
    """*With synthesis on, a branch whose children are all done becomes claimable too.*

    For the root the latest policy says so. For another branch both the latest policy and the one in force when its
    children were all done: switched on later it undoes no branch that was finished, switched off it frees those that
    wait.
    """
    if is_root:
        return latest != "none"
    return latest == at_completion == "all"


def counts_from(ground: Hlc, retried_at: Hlc) -> Hlc:
    """*A claim counts only if its hlc is later than everything that the work rests on*, and than the latest retry."""
    return ground if ground > retried_at else retried_at


def lot(task: TaskId, author: PeerId) -> bytes:
    """*The smallest (hlc, SHA-256(task ‖ author))*: settles claims of one instant, differently for every task."""
    return hashlib.sha256(task + author.encode()).digest()


def follows_from(prior: Hlc, released_at: Hlc | None, lease_s: int) -> Hlc:
    """*A claim with `prior` counts if prior is the holder at that point and either prior was released, or the
    claim's hlc ≥ prior's hlc + lease_s.* The least hlc that such a claim needs: later than
    the release, if that opens the way."""
    lapses = prior + lease_s * 1000 * MS
    if released_at is not None and released_at < lapses:
        return released_at + 1
    return lapses


def hold(
    claims: Sequence[ClaimKey],
    followers: Mapping[OpId, Sequence[ClaimKey]] | None,
    released: Mapping[OpId, ReleaseKey] | None,
    since: Hlc,
    lease_s: int,
    attempts: int,
) -> Hold:
    """*Claims form one chain, and its last link is the holder.*

    The first link is the earliest claim that counts: what it takes over, if anything, doesn't count (any more). *After
    `attempts` failures in the chain the task has failed*: the chain ends there. A release is a failure if it says so,
    unless its claim had already been taken over; and whatever it says, if it's the 65th of those that say otherwise.

    Args:
        claims: of the task, in winning order.
        followers: claims by the claim that they take over, in winning order.
        released: the first release of each released claim.
        since: only claims later than this count.
    """
    first = _first_from(claims, since + 1)
    if first is None:
        return NO_HOLD
    chain, releases, given_back = [first[3]], 0, 0
    while True:
        link = chain[-1]
        release = released.get(link.id) if released else None
        released_at = release[0] if release is not None else None
        successor = None
        candidates = followers.get(link.id) if followers else None
        if candidates:
            successor = _first_from(candidates, follows_from(link.hlc, released_at, lease_s))
        if release is not None and (successor is None or successor[0] > release[0]):
            given_back += not release[2]
            releases += release[2] or given_back > MAX_GIVEN_BACK
            if successor is None or releases >= attempts:
                return Hold(tuple(chain), None, releases)
        if successor is None:
            return Hold(tuple(chain), link, releases)
        chain.append(successor[3])


def _first_from(claims: Sequence[ClaimKey], hlc: Hlc) -> ClaimKey | None:
    at = bisect_left(claims, (hlc,))
    return claims[at] if at < len(claims) else None


def result(results: Iterable[ResultKey], since: Hlc) -> Op | None:
    """*The smallest (hlc, op_id) is the task's result.* It counts if its claim counts, in the chain or not.

    So done stays done: a late or back-dated earlier claim can't undo work.

    Args:
        results: of the task, in winning order.
        since: only results of claims later than this count.
    """
    for _, _, claimed, op in results:
        if claimed > since:
            return op
    return None


def result_as_leaf(results: Iterable[ResultKey], since: Hlc, line: Sequence[Term], depth: int) -> Op | None:
    """*Done stays done*, also when the operator raises max_depth later: a task that wasn't split by then and has a
    result of a claim made while it was a leaf stays a leaf."""
    for _, _, claimed, op in results:
        if claimed > since and depth >= in_force(line, claimed).max_depth:
            return op
    return None


def claim_state(holding: Hold, attempts: int) -> State:
    """The word for a task that can be claimed and isn't done."""
    if holding.holder is not None:
        return State.CLAIMED
    return State.FAILED if holding.releases >= attempts else State.READY
