"""The clock that jumps, and what a run changes of the process while it lasts."""

from __future__ import annotations

import gc
import signal

import pytest
import trio

from swarmtui.peer import intake, store
from swarmtui.sim import figures
from swarmtui.sim.clock import JumpingClock


def test_it_jumps_from_one_moment_that_somebody_waits_for_to_the_next() -> None:
    woken: list[tuple[float, float]] = []

    async def sleeper(seconds: float) -> None:
        await trio.sleep(seconds)
        woken.append((seconds, trio.current_time()))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for seconds in (86_400.0, 0.25, 3_600.0, 0.0):
                nursery.start_soon(sleeper, seconds)

    trio.run(main, clock=JumpingClock())
    assert woken == [(0.0, 0.0), (0.25, 0.25), (3_600.0, 3_600.0), (86_400.0, 86_400.0)]


def test_no_time_passes_while_something_runs() -> None:
    async def main() -> float:
        with trio.move_on_after(1.0):
            for _ in range(1_000):
                await trio.lowlevel.checkpoint()
        return trio.current_time()

    assert trio.run(main, clock=JumpingClock()) == 0.0


@pytest.mark.parametrize("busy", [True, False])
def test_ctrl_c_comes_through_whether_or_not_anything_runs(busy: bool) -> None:
    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        while busy:
            await trio.lowlevel.checkpoint()
        await trio.sleep_forever()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            trio.run(trio.lowlevel.enable_ki_protection(main), clock=JumpingClock())
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_run_leaves_the_process_as_it_was() -> None:
    def state() -> tuple[object, ...]:
        return (
            gc.get_threshold(),
            *(vars(intake)[name] for name in ("open_presence", "take_apart")),
            vars(store)["peek"],
        )

    before = state()
    figures.one(1, (5, 6), None)
    assert state() == before
