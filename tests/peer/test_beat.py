"""Peers of one program do in the same moment what they do regularly."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from swarmtui.peer.beat import beat, next_beat
from swarmtui.peer.presence import INTERVAL_S

from .world import World, until


async def test_no_beat_is_left_out_and_none_comes_twice(autojump_clock: MockClock) -> None:
    for every, phase in ((1.0, 0.0), (0.1, 0.0), (10.0, 3.7), (17.5, 0.1), (1 / 3, 0.01)):
        await trio.sleep(0.123)
        due = next_beat(every, phase)
        assert 0 < due - trio.current_time() <= every
        for _ in range(100):
            assert abs(await beat(every, phase) - due) < 1e-6
            assert abs(trio.current_time() - due) < 1e-6
            due += every


async def test_who_wait_for_a_beat_wake_together_whoever_is_cancelled(autojump_clock: MockClock) -> None:
    scopes = [trio.CancelScope() for _ in range(6)]
    woken: dict[int, float] = {}

    async def wait(number: int) -> None:
        with scopes[number]:
            woken[number] = await beat(10.0)

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(wait, number)
        for number in (0, 1, 4):  # the one that sleeps for the others is among them
            await trio.sleep(1)
            scopes[number].cancel()
    assert woken == {2: 10.0, 3: 10.0, 5: 10.0}
    assert trio.current_time() == 10.0


async def test_peers_of_one_program_speak_together(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    peers = [await world.start(number, beat_s=0.0) for number in range(5)]
    await until(lambda: all(len(peer.presences) == 4 for peer in peers))
    await trio.sleep(2 * INTERVAL_S)  # what newcomers bring about is over
    sent = [peer.counters.presences_out for peer in peers]
    moments = set()
    for _ in range(int(50 / 0.25)):
        await trio.sleep(0.25)
        now = [peer.counters.presences_out for peer in peers]
        if now != sent:
            assert [after - before for before, after in zip(sent, now, strict=True)] == [1] * 5
            moments.add(trio.current_time() // INTERVAL_S)
            sent = now
    assert len(moments) == 5, "one presence of each in each interval"
    world.stop_all()
