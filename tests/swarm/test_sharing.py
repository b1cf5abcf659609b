"""The peers of one program tell each other what the network doesn't."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from swarmtui.plan.envelope import seal
from swarmtui.plan.ops import Op
from swarmtui.swarm.sharing import LOOK_S, hand_over, share
from tests.peer.world import EPOCH_MS, World, draft, goal, identity, note, now_ms, until


@pytest.mark.parametrize("twice", [False, True], ids=["an op", "two ops under one number"])
async def test_what_reached_one_peer_of_the_program_reaches_all(autojump_clock: MockClock, twice: bool) -> None:
    async with trio.open_nursery() as nursery:
        world = World(nursery, loss=1.0)  # the network brings nothing
        observer, one, two = await world.start(0, silent=True), await world.start(1), await world.start(2)
        peers = [observer, one, two]
        nursery.start_soon(share, lambda: peers, observer)
        author = identity(9)
        root = seal(author, b"", 0, EPOCH_MS << 16, goal())
        last = [seal(author, root.id, 1, (EPOCH_MS + 1) << 16, note(root.id, text)) for text in ("a", "b")]
        one.take([root, last[0]])
        two.take([root, seal(identity(8), root.id, 0, (EPOCH_MS + 1) << 16, draft(root.id))])
        if twice:
            observer.take([root, last[1]])
        took = await until(world.equal, seconds=4 * LOOK_S)
        assert took >= LOOK_S, "what may be under way is left to the network"
        assert observer.replica.count == (4 if twice else 3)
        world.stop_all()


@pytest.mark.parametrize("thoroughly", [False, True])
async def test_what_a_peer_holds_back_for_its_time_it_isnt_given_again(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, thoroughly: bool
) -> None:
    world = World(nursery)
    giver, taker = world.make(1), world.make(2, clock=lambda: now_ms() - 60_000)
    given: list[Op] = []
    take = taker.take
    monkeypatch.setattr(taker, "take", lambda ops: given.extend(ops) or take(ops))
    root = seal(identity(9), b"", 0, now_ms() - 60_000 << 16, goal())
    early = seal(identity(9), root.id, 0, now_ms() << 16, draft(root.id))
    giver.take([root, early])
    assert hand_over(giver, taker, thoroughly=thoroughly) == 2
    assert [held.op for held in taker.held] == [early]
    assert hand_over(giver, taker, thoroughly=thoroughly) == 0
    assert given == [root, early]
