"""The peers of one program tell each other what the network doesn't."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from swarmtui.plan.envelope import seal
from swarmtui.swarm.sharing import LOOK_S, share
from tests.peer.world import EPOCH_MS, World, draft, goal, identity, note, until


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
