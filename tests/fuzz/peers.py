"""A real peer on the memory network: whatever comes, it goes on, and an honest op still gets through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import trio
from trio.testing import MockClock

from swarmtui.peer.memory import reproducible
from swarmtui.peer.network import MAX_ANSWER_BYTES, Frame
from swarmtui.peer.peer import Peer
from swarmtui.peer.repair import Answer, Refused
from swarmtui.plan.ops import Op, OpId
from tests.peer.world import World, draft, goal, until

from . import material
from .dice import Dice
from .watching import nothing_unforeseen

Feed = Callable[["Scene", int], Awaitable[None]]
ANSWERS = 6
"""Hostile answers to one repair; the next ones are empty."""


class Scene:
    """An honest pair in one plan, and what an attacker knows of it."""

    def __init__(self, dice: Dice, world: World, one: Peer, two: Peer, given: Op) -> None:
        self.dice, self.world, self.one, self.two, self.plan = dice, world, one, two, given.id
        self.villains = [who.peer_id for who in material.PEOPLE]

    def ids(self, dice: Dice) -> OpId:
        """Something to refer to: mostly what's there."""
        known = [op.id for op in self.two.replica.ops()][-20:]
        return dice.choose([self.plan, *known, *list(self.two.replica.plans[self.plan].tasks)[-8:], b"?" * 32])

    def well(self) -> None:
        """Nothing happened that wasn't foreseen."""
        assert self.one.counters.errors == self.two.counters.errors == 0
        for plan in self.two.replica.plans:
            self.two.replica.picture(plan)
        assert isinstance(self.two.complete, bool)
        assert all(isinstance(notice, str) for notice in self.two.notices)


def frames(dice: Dice, inputs: int) -> None:
    _live(dice, inputs, _frames)


async def _frames(scene: Scene, inputs: int) -> None:
    for _ in range(inputs):
        data = material.frame(scene.dice, scene.ids, scene.plan)
        source = scene.dice.choose(scene.villains)
        verdict = scene.two._intake.valid(data)
        assert verdict in (True, False, None)
        if scene.dice.chance(50):
            scene.world.hub.inject(source, scene.two.peer_id, data)
        else:  # past the validator, as from a network without one
            scene.two._intake.frame(Frame(data, source))
        if scene.dice.chance(5):
            await trio.sleep(scene.dice.choose([0.01, 1, 20]))


def requests(dice: Dice, inputs: int) -> None:
    _live(dice, inputs, _requests)


async def _requests(scene: Scene, inputs: int) -> None:
    for number in range(inputs):
        data = material.request(scene.dice, scene.ids, scene.plan)
        try:
            answered = await scene.two._answer(f"asker {number % 40}", data)
        except Refused:
            pass
        else:
            assert len(answered) <= MAX_ANSWER_BYTES
            msgspec.msgpack.decode(answered, type=Answer)
        if number % 200 == 199:
            await trio.sleep(15)


def answers(dice: Dice, inputs: int) -> None:
    _live(dice, inputs, _answers)


async def _answers(scene: Scene, inputs: int) -> None:
    ask, left = scene.two.network.ask, 0

    async def lie(peer: str, request: bytes) -> bytes:
        nonlocal left
        await trio.lowlevel.checkpoint()
        left -= 1
        if left < 0:
            return b"\x80"
        return material.answer(scene.dice, scene.ids, scene.plan)

    scene.two.network.ask = lie  # type: ignore[method-assign]
    while inputs > 0:
        left = min(inputs, ANSWERS)
        inputs -= ANSWERS
        await scene.two._repair._swap_safely(scene.dice.choose(scene.villains))
    scene.two.network.ask = ask  # type: ignore[method-assign]


def _live(dice: Dice, inputs: int, feed: Feed) -> None:
    """Feed a peer; afterwards it's well, an honest op gets through at once, and the two come to hold the same."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            world = World(nursery)
            one, two = [await world.start(n, clock=_now_ms) for n in (1, 2)]
            (given,) = await one.say(b"", goal())
            await until(world.equal)
            scene = Scene(dice, world, one, two, given)
            await feed(scene, inputs)
            await trio.sleep(0.5)
            scene.well()
            (said,) = await one.say(given.id, draft(given.id))
            await until(lambda: two.replica.get(said.id), 5)
            await until(world.equal, 600)
            scene.well()
            assert two.replica.grounded(said)
            for plan in one.replica.plans:
                assert one.replica.picture(plan) == two.replica.picture(plan)
            world.stop_all()

    with reproducible(1), nothing_unforeseen():
        trio.run(main, clock=MockClock(autojump_threshold=0))


def _now_ms() -> int:
    return material.START_MS + 20_000 + int(trio.current_time() * 1000)
