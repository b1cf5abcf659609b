"""Who else is there and at what: what an agent makes of the presences that its peer has heard. Only ever a hint:
nothing that presence says decides what a plan is, and nobody waits for it without end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swarmtui.plan.ops import PeerId, Policy

if TYPE_CHECKING:
    from swarmtui.peer.peer import Heard


@dataclass(frozen=True, slots=True)
class Busy:
    """What a peer said that it's doing, and when (own monotonic clock, seconds)."""

    doing: str
    subject: str
    at: float


@dataclass(frozen=True, slots=True)
class Crowd:
    """The peers that can be heard now."""

    roles: Mapping[PeerId, str] = field(default_factory=dict)
    busy: Mapping[PeerId, Busy] = field(default_factory=dict)

    def of(self, role: str) -> frozenset[PeerId]:
        """The living peers of a role."""
        return frozenset(peer for peer, is_a in self.roles.items() if is_a == role)

    def doing(self, doing: str, subject: str, *, but: PeerId) -> int:
        """How many others say that they do this now."""
        return sum(item.doing == doing and item.subject == subject for peer, item in self.busy.items() if peer != but)

    def free(self, role: str, busy: Collection[str]) -> frozenset[PeerId]:
        """The living peers of a role that don't say that they're at one of these."""
        return frozenset(
            peer for peer in self.of(role) if (said := self.busy.get(peer)) is None or said.doing not in busy
        )


def crowd(presences: Iterable[tuple[PeerId, Heard]], now: float, myself: tuple[PeerId, str]) -> Crowd:
    """Take those that were heard within their own time and aren't leaving, and oneself.

    Args:
        presences: what the peer has heard.
        now: own monotonic clock, seconds.
        myself: own peer id and role.
    """
    roles: dict[PeerId, str] = {}
    busy: dict[PeerId, Busy] = {}
    for peer, heard in presences:
        said = heard.presence
        if said.leaving or now - heard.at > heard.patience_s:
            continue
        roles[peer] = said.role
        busy[peer] = Busy(said.doing, said.subject, heard.at)
    roles[myself[0]] = myself[1]
    return Crowd(roles, busy)


def scorers(policy: Policy, crowd: Crowd) -> frozenset[PeerId]:
    """The living peers whose votes count under a policy."""
    living = crowd.of("scorer")
    return living & frozenset(policy.scorers) if policy.scorers else living


def may_vote(policy: Policy, peer: PeerId) -> bool:
    """Whether a peer's votes count under a policy."""
    return not policy.scorers or peer in policy.scorers
