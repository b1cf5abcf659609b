"""A small world for peers: identities, peers on a memory hub, and waiting for what should come to pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import trio

from swarmtui.peer.memory import Faults, MemoryHub
from swarmtui.peer.peer import Card, Peer
from swarmtui.plan.envelope import Identity, seal
from swarmtui.plan.ops import Body, Goal, Note, Op, Proposal, Steer, Step

EPOCH_MS = 1_700_000_000_000


def identity(number: int) -> Identity:
    return Identity.from_seed(number.to_bytes(32, "big"))


def now_ms() -> int:
    """A wall clock that goes with trio's."""
    return EPOCH_MS + int(trio.current_time() * 1000)


def goal(title: str = "plan a trip") -> Goal:
    return Goal(title=title, nonce=b"n")


def draft(task: bytes, word: str = "a") -> Proposal:
    return Proposal(task=task, steps=(Step(title=f"go {word}"), Step(title=f"come back {word}")))


def note(task: bytes, text: str) -> Steer:
    return Steer(act=Note(task=task, text=text))


def op(author: Identity, plan: bytes, seq: int, body: Body, at_ms: int = EPOCH_MS) -> Op:
    return seal(author, plan, seq, at_ms << 16, body)


class World:
    """Peers by number on one hub. `nursery` runs them."""

    def __init__(self, nursery: trio.Nursery, seed: int = 1, **faults: Any) -> None:
        self.nursery = nursery
        self.rng = random.Random(seed)
        self.hub = MemoryHub(random.Random(seed + 1), Faults(**faults))
        self.peers: dict[int, Peer] = {}
        self._scopes: dict[int, trio.CancelScope] = {}
        self._ended: dict[int, trio.Event] = {}

    def make(self, number: int, *, clock: Callable[[], int] = now_ms, **options: Any) -> Peer:
        """A peer that doesn't run yet."""
        who = identity(number)
        options.setdefault("fresh", True)
        role = "observer" if options.get("silent") else "scorer"
        peer = Peer(
            who,
            self.hub.network(who.peer_id),
            now_ms=clock,
            rng=random.Random(self.rng.random()),
            card=Card(name=f"p{number}", role=role),
            **options,
        )
        self.peers[number] = peer
        return peer

    async def start(self, number: int, **options: Any) -> Peer:
        peer = self.make(number, **options)
        scope, ended = trio.CancelScope(), trio.Event()
        self._scopes[number], self._ended[number] = scope, ended

        async def live(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            try:
                with scope:
                    await peer.run(task_status=task_status)
            finally:
                ended.set()

        await self.nursery.start(live)
        return peer

    async def end(self, number: int, *, abrupt: bool = False) -> None:
        """End a peer: politely, or like a crash."""
        peer = self.peers[number]
        if abrupt:
            peer.abrupt = True
            self.hub.down(peer.peer_id)
        self._scopes[number].cancel()
        await self._ended[number].wait()
        del self.peers[number]
        self.hub.up(peer.peer_id)

    async def started(self, numbers: range, **options: Any) -> list[Peer]:
        return [await self.start(number, **options) for number in numbers]

    def equal(self) -> bool:
        """Whether all peers hold the same, and something."""
        prints = {peer.replica.fingerprint for peer in self.peers.values()}
        return len(prints) == 1 and next(iter(self.peers.values())).replica.count > 0

    def stop_all(self) -> None:
        self.nursery.cancel_scope.cancel()


async def until(true: Callable[[], object], seconds: float = 120.0, every: float = 0.1) -> float:
    """Wait until something is true, by trio's clock; returns how long it took."""
    began = trio.current_time()
    for _ in range(round(seconds / every)):
        if true():
            break
        await trio.sleep(every)
    assert true(), f"not within {seconds} s"
    return trio.current_time() - began
