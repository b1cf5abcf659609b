"""Stopping a member's tasks, as SIGSTOP does, and letting them go on."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from swarmtui.sim.stopping import Stopper, belongs_to


async def ticking(member: int, ticks: list[float]) -> None:
    belongs_to.set(member)
    while True:
        await trio.sleep(1)
        ticks.append(trio.current_time())


async def test_a_stopped_member_runs_nothing_and_its_timers_are_late(autojump_clock: MockClock) -> None:
    stopper, mine, others = Stopper(), [], []
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ticking, 1, mine)
        nursery.start_soon(ticking, 2, others)
        await trio.sleep(2.5)
        stopper.stop(1)
        assert stopper.is_stopped(1)
        await trio.sleep(10)
        assert len(mine) == 2
        stopper.go_on(1)
        await trio.sleep(1.2)
        nursery.cancel_scope.cancel()
    assert [round(at - began, 1) for at in mine] == [1.0, 2.0, 12.5, 13.5], "the third timer fired late, at once"
    assert len(others) == 13, "nobody else noticed"


async def test_tasks_that_a_stopped_one_started_are_stopped_too(autojump_clock: MockClock) -> None:
    stopper, ticks = Stopper(), []

    async def parent() -> None:
        belongs_to.set(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ticking, 1, ticks)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(parent)
        await trio.sleep(1.5)
        stopper.stop(1)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
        assert len(ticks) == 1
        stopper.go_on(1)  # else the nursery would wait for ever


async def test_a_stopped_member_can_be_cancelled_and_unwinds_when_it_goes_on(autojump_clock: MockClock) -> None:
    stopper, ended = Stopper(), trio.Event()
    scope = trio.CancelScope()

    async def member() -> None:
        belongs_to.set(1)
        try:
            with scope:
                await trio.sleep_forever()
        finally:
            ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(member)
        await trio.sleep(1)
        stopper.stop(1)
        scope.cancel()
        await trio.sleep(1)
        assert not ended.is_set()
        stopper.go_on(1)
        with trio.fail_after(1):
            await ended.wait()


async def test_waiting_for_it_to_go_on(autojump_clock: MockClock) -> None:
    stopper = Stopper()
    await stopper.gone_on(7)
    stopper.stop(7)
    stopper.stop(7)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stopper.gone_on, 7)
        await trio.sleep(3)
        stopper.go_on(7)
        stopper.go_on(7)
    assert not stopper.is_stopped(7)
