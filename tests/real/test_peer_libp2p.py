"""Peers over real libp2p hosts on loopback: gossip, repair, a late listener that says nothing, and a goodbye."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import trio

from swarmtui.peer.journal import Journal
from swarmtui.peer.libp2p import Libp2pNetwork
from swarmtui.peer.peer import Card, Peer
from swarmtui.plan.envelope import Identity, seal
from swarmtui.plan.ops import Goal, Note, Op, Steer

DEADLINE = 150.0


class Counted(Libp2pNetwork):
    """Counts what it's asked to send."""

    sent = 0

    async def publish(self, data: bytes) -> None:
        self.sent += 1
        await super().publish(data)

    async def ask(self, peer: str, request: bytes) -> bytes:
        self.sent += 1
        return await super().ask(peer, request)


def make(number: int, *, silent: bool = False, journal: Journal | None = None) -> Peer:
    identity = Identity.from_seed(bytes([number]) * 32)
    return Peer(
        identity,
        Counted(identity, "peers", listen=["127.0.0.1"], mdns=False),
        now_ms=lambda: time.time_ns() // 1_000_000,
        rng=random.Random(number),
        journal=journal,
        silent=silent,
        card=Card(name=f"p{number}", role="observer" if silent else "scorer"),
        fresh=True,
    )


async def until(true: Callable[[], object]) -> None:
    with trio.fail_after(DEADLINE):
        for _ in iter(lambda: bool(true()), True):
            await trio.sleep(0.05)


def kept(path: Path) -> tuple[Journal, Op]:
    """A journal with a plan of 201 ops, which gossip doesn't tell any more."""
    author = Identity.from_seed(b"a" * 32)
    now = time.time_ns() // 1_000_000 << 16
    goal = seal(author, b"", 0, now, Goal(title="a plan"))
    notes = (Steer(act=Note(task=goal.id, text=f"{n} " + "x" * 2000)) for n in range(200))
    journal = Journal(path)
    journal.append([goal, *(seal(author, goal.id, n, now + n, body) for n, body in enumerate(notes, 1))])
    return journal, goal


async def test_peers_agree_and_a_late_listener_says_nothing(tmp_path: Path) -> None:
    journal, goal = kept(tmp_path / "journal")
    one = make(1, journal=journal)
    two, three = make(2), make(3)
    observer = make(9, silent=True)
    leave = trio.CancelScope()

    async def run_until_left(task_status: trio.TaskStatus[None]) -> None:
        with leave:
            await two.run(task_status=task_status)

    async def start(nursery: trio.Nursery, peer: Peer) -> None:
        await nursery.start(run_until_left if peer is two else peer.run)
        if peer is not one:
            await peer.network.connect(one.network.addresses[0])

    def equal(*peers: Peer) -> Callable[[], bool]:
        return lambda: len({(peer.replica.count, peer.replica.fingerprint) for peer in peers}) == 1

    async with trio.open_nursery() as nursery:
        await start(nursery, one)
        await start(nursery, two)
        await start(nursery, three)
        await until(equal(one, two, three))
        assert two.counters.repaired + three.counters.repaired > 0

        await start(nursery, observer)
        await until(lambda: equal(one, observer)() and observer.complete)
        assert observer.replica.count == 201
        (said,) = await two.say(goal.id, Steer(act=Note(task=goal.id, text="by gossip")))
        await until(lambda: all(peer.replica.get(said.id) for peer in (one, three, observer)))
        assert len({peer.replica.picture(goal.id) for peer in (one, two, three, observer)}) == 1
        assert isinstance(observer.network, Counted)
        assert observer.network.sent == 0
        assert observer.peer_id not in one.presences

        leave.cancel()
        with trio.fail_after(20):  # by silence it would take 30 s
            await until(lambda: two.peer_id not in one.presences and two.peer_id not in observer.presences)
        for peer in (one, two, three, observer):
            assert not peer.counters.errors
            assert not peer.counters.invalid
        nursery.cancel_scope.cancel()
