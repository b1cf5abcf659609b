"""Votes, picks and vetoes: keeps a task's drafts in the orders that decide among them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from . import rules
from .nodes import Ballot, Node
from .ops import MAX_PROPOSALS_PER_AUTHOR, Op, PeerId
from .ordered import put
from .rules import Term


def enlist(ballot: Ballot) -> None:
    """Add a draft to its task's contest."""
    node, contest = ballot.node, ballot.node.contested()
    node.drafts[ballot.op.id] = ballot
    ballot.counts = False
    author, entry = ballot.op.author, (ballot.op.seq, ballot.op.id, ballot)
    contest.by_author[author] = put(contest.by_author.get(author, ()), entry, True)
    contest.standing += 1
    limit(node, author)


def limit(node: Node, author: PeerId) -> None:
    """*≤ 8 proposals per author and task: the lowest seq count.*

    Vetoed ones use up no place, so that an author whose drafts were all vetoed can go on. A draft over the limit isn't
    worth judging; a quorum accepts it all the same, so that a lower seq, filled in later, undoes nothing accepted.
    Those that count are the first of the author's drafts.
    """
    contest = node.contested()
    drafts = contest.by_author[author]
    within = standing = 0
    for _, _, draft in drafts:
        if standing == MAX_PROPOSALS_PER_AUTHOR:
            break
        standing += not draft.vetoed
        within += 1
    reach = max(within, contest.within.get(author, 0)) + 1
    for i, (_, _, draft) in enumerate(islice(drafts, reach)):
        draft.counts = i < within
    contest.within[author] = within


def put_vote(ballot: Ballot, op: Op, approve: bool, allowed: Collection[PeerId]) -> tuple[bool, bool]:
    """*A scorer counts once per proposal, at the hlc of its first approving vote.* Its latest vote is shown.

    Args:
        allowed: the policy's closed list; empty: anyone.

    Returns:
        Whether the draft's approvals, counted by any policy, differ; whether what's shown of it differs.
    """
    scorer, entry = op.author, (op.hlc, op.id, op)
    old_first = ballot.firsts.get(scorer)
    votes = ballot.cast[scorer] = put(ballot.cast.get(scorer, ()), entry, True)
    shown = not allowed or scorer in allowed
    latest = votes[-1][2]
    differs = shown and ballot.votes.get(scorer) is not latest
    if differs:
        ballot.votes[scorer] = latest
    if not approve or (old_first is not None and old_first <= op.hlc):
        return False, differs
    if old_first is not None:
        ballot.tally = put(ballot.tally, (old_first, scorer), False)
    ballot.tally = put(ballot.tally, (op.hlc, scorer), True)
    ballot.firsts[scorer] = op.hlc
    if shown:
        ballot.approvals[scorer] = op.hlc
    return True, differs or shown


def show_allowed(ballot: Ballot, allowed: Collection[PeerId]) -> bool:
    """Show the votes of those that the latest policy allows; whether that's a different set."""
    old = set(ballot.votes)
    ballot.approvals = {scorer: at for at, scorer in ballot.tally if not allowed or scorer in allowed}
    ballot.votes = {scorer: votes[-1][2] for scorer, votes in ballot.cast.items() if not allowed or scorer in allowed}
    return old != set(ballot.votes)


def decide(ballot: Ballot, line: Sequence[Term]) -> bool:
    """Reckon anew when the draft was accepted and whether it's vetoed, and rank it so.

    *The operator's latest word on a draft decides whether it's vetoed.* A picked draft is *accepted at the earlier of
    its own accepted_at and the pick's hlc*: the first pick's, so that a second one undoes no work begun in between.

    Returns:
        Whether anything differs.
    """
    node, words, old = ballot.node, ballot.words, (ballot.accepted_at, ballot.vetoed, ballot.picked)
    accepted = rules.accepted_at(ballot.tally, line, node.depth)
    vetoed, picked = False, None
    if words:
        vetoed = not words[-1][2]
        first = next((at for at, _, pick in words if pick), None)
        if first is not None and (accepted is None or first < accepted):
            accepted = first
        picked = None if vetoed else words[-1][:2]
    if old == (accepted, vetoed, picked):
        return False
    _rank(ballot, accepted, vetoed, picked)
    return True


def _rank(ballot: Ballot, accepted: int | None, vetoed: bool, picked: tuple[int, bytes] | None) -> None:
    node, contest, op_id = ballot.node, ballot.node.contested(), ballot.op.id
    if ballot.accepted_at is not None and not ballot.vetoed:
        contest.accepted = put(contest.accepted, (ballot.accepted_at, op_id, ballot), False)
    if ballot.picked is not None:
        contest.picked = put(contest.picked, (*ballot.picked, ballot), False)
    if accepted is not None and not vetoed:
        contest.accepted = put(contest.accepted, (accepted, op_id, ballot), True)
    if picked is not None:
        contest.picked = put(contest.picked, (*picked, ballot), True)
    was_vetoed = ballot.vetoed
    ballot.accepted_at, ballot.vetoed, ballot.picked = accepted, vetoed, picked
    if vetoed != was_vetoed:
        contest.standing += -1 if vetoed else 1
        limit(node, ballot.op.author)
