"""Pictures of whole screens. After a wanted change: pytest tests/ui/test_snapshots.py --snapshot-update, and look."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from swarmtui.ui.app import SwarmApp

from .driving import NARROW, TINY, WIDE
from .sample import FakeSwarm, SampleConfig, japan, nothing, notice, now, view_of

SCREENS: dict[str, tuple[Any, tuple[int, int], tuple[str, ...]]] = {
    "main": (view_of(japan()), WIDE, ("down", "down")),
    "votes": (view_of(japan()), WIDE, ("down",) * 5 + ("3", "right", "right")),
    "narrow": (view_of(japan(), notices=(notice("No secret: anyone near can join."),)), NARROW, ("2",)),
    "goal": (nothing(), NARROW, ()),
    "small": (view_of(japan()), TINY, ()),
    "policy": (view_of(japan()), NARROW, ("Q",)),
}


@pytest.mark.parametrize("name", SCREENS)
def test_picture(name: str, snap_compare: Any) -> None:
    view, size, keys = SCREENS[name]
    app = SwarmApp(FakeSwarm(view), SampleConfig(), now=now)

    async def before(pilot: Pilot[int]) -> None:
        while not app.started:
            await pilot.pause(0.01)
        await pilot.pause()
        await pilot.press(*keys)
        for entry in app.screen.query("Input, TextArea"):
            entry.cursor_blink = False  # type: ignore[attr-defined]
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=before)
