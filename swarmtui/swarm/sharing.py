"""What one peer of this program holds, the others of it get: they needn't wait for the network to tell them.

An observer can't ask, and in a large swarm the carousel comes round to an op only every few minutes; what reached the
observer alone, it can tell nobody. Here both lie in one process with a peer that can. An op is signed by its author,
whoever hands it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from swarmtui.peer.beat import beat
from swarmtui.peer.peer import Peer

LOOK_S = 5.0
"""An op that is under way reaches everybody sooner: who differs at two looks in a row is given what it lacks."""


async def share(peers: Callable[[], Iterable[Peer]], observer: Peer) -> None:
    """Hand over what differs between the observer and the other peers, until cancelled.

    Args:
        peers: those that run now; asked again and again.
        observer: the one by way of which all get everything.
    """
    before: dict[Peer, tuple[bytes, bytes]] = {}
    while True:
        await beat(LOOK_S)
        now = {}
        for peer in peers():
            prints = peer.replica.fingerprint, observer.replica.fingerprint
            if peer is observer or prints[0] == prints[1]:
                continue
            if peer in before:
                still = before[peer] == prints
                hand_over(peer, observer, thoroughly=still)
                hand_over(observer, peer, thoroughly=still)
                await trio.lowlevel.checkpoint()
            now[peer] = prints
        before = now


def hand_over(giver: Peer, taker: Peer, *, thoroughly: bool) -> int:
    """Give a peer what it lacks; what it holds back for its time, it has.

    Args:
        thoroughly: look at each op: two ops in one slot look like one in a vector. Slow for large sets.

    Returns:
        How many ops it took.
    """
    ops = giver.replica.ops() if thoroughly else giver.replica.lacking(taker.replica.vector())
    return taker.take([op for op in ops if not taker.holds(op.id)])
