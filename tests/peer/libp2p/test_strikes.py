"""Faults are counted, bans are shown with their end, and end."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from swarmtui.peer.libp2p.strikes import BAN_S, REMEMBERED, SHOWN, STRIKES, WINDOW_S, Strikes


def strikes() -> Strikes:
    return Strikes(trio.current_time, lambda at: f"t+{at:g}")


async def test_five_faults_in_a_minute_ban_and_the_ban_ends(autojump_clock: MockClock) -> None:
    counted, began = strikes(), trio.current_time()
    assert [counted.add("villain", "noise") for _ in range(STRIKES)] == [False] * (STRIKES - 1) + [True]
    assert counted.banned("villain")
    assert not counted.banned("other")
    (notice,) = counted.notices()
    assert "villain is shut out until" in notice
    assert f"t+{began + BAN_S:g}" in notice
    assert not counted.add("villain", "still here"), "a ban isn't begun twice"
    await trio.sleep(BAN_S + 1)
    assert not counted.banned("villain")
    assert counted.notices() == []
    assert not counted.add("villain", "again"), "it begins anew"


async def test_faults_far_apart_ban_nobody(autojump_clock: MockClock) -> None:
    counted = strikes()
    for _ in range(3 * STRIKES):
        assert not counted.add("clumsy", "a slip")
        await trio.sleep(WINDOW_S / (STRIKES - 2))


async def test_a_flood_of_keys_fills_neither_the_memory_nor_the_screen(autojump_clock: MockClock) -> None:
    counted = strikes()
    for key in range(3 * REMEMBERED):
        for _ in range(STRIKES):
            counted.add(f"key{key}", "noise")
        counted.add(f"once{key}", "noise")
    assert len(counted._banned) == REMEMBERED
    assert len(counted._faults) <= REMEMBERED
    notices = counted.notices()
    assert len(notices) == SHOWN + 1
    assert f"{REMEMBERED - SHOWN} more peers" in notices[-1]
