"""Scorers who ask the same share one weighing."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from swarmtui.llm.memo import Memo
from swarmtui.llm.model import ModelError


class Scales:
    """Weighs when it's told to, and counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.go = trio.Event()
        self.fail = False

    async def __call__(self) -> list[float]:
        self.asked += 1
        await self.go.wait()
        if self.fail:
            self.fail = False
            raise ModelError("died")
        return [-1.0, -2.0]


async def test_three_who_ask_at_once_share_one_weighing() -> None:
    memo, scales = Memo(), Scales()
    got: list[list[float]] = []

    async def ask() -> None:
        got.append(await memo.get("p", ["a", "b"], scales))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        scales.go.set()
    await ask()
    assert got == [[-1.0, -2.0]] * 4 and scales.asked == 1
    await memo.get("p", ["a"], scales)
    assert scales.asked == 2


async def test_when_the_one_who_weighs_is_cancelled_the_next_takes_over() -> None:
    memo, scales = Memo(), Scales()
    got: list[list[float]] = []
    first = trio.CancelScope()

    async def leave() -> None:
        with first:
            await memo.get("p", ["a"], scales)

    async def stay() -> None:
        got.append(await memo.get("p", ["a"], scales))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(stay)
        await trio.testing.wait_all_tasks_blocked()
        first.cancel()
        await trio.testing.wait_all_tasks_blocked()
        scales.go.set()
    assert got == [[-1.0, -2.0]] and scales.asked == 2


async def test_a_failure_is_the_askers_own_and_isnt_remembered() -> None:
    memo, scales = Memo(), Scales()
    scales.go.set()
    scales.fail = True
    with pytest.raises(ModelError):
        await memo.get("p", ["a"], scales)
    assert await memo.get("p", ["a"], scales) == [-1.0, -2.0]


async def test_the_oldest_is_forgotten() -> None:
    memo, scales = Memo(size=2), Scales()
    scales.go.set()
    for prefix in ("1", "2", "1", "3"):
        await memo.get(prefix, ["a"], scales)
    assert scales.asked == 3
    await memo.get("1", ["a"], scales)
    assert scales.asked == 3
    await memo.get("2", ["a"], scales)
    assert scales.asked == 4
