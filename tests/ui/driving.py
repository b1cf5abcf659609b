"""Drives the terminal in a test: Textual needs asyncio, while this project's async tests run on trio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from textual.events import Key, Paste
from textual.keys import _character_to_key
from textual.pilot import Pilot

from swarmtui.ui.app import SwarmApp
from swarmtui.view import SwarmView

from .sample import FakeSwarm, SampleConfig, now

WIDE = (120, 36)
NARROW = (80, 24)
TINY = (50, 12)


class Driver:
    """A running terminal over a swarm that only notes what it is asked."""

    def __init__(self, pilot: Pilot[int], app: SwarmApp, swarm: FakeSwarm) -> None:
        self.pilot = pilot
        self.app = app
        self.swarm = swarm

    async def press(self, *keys: str) -> None:
        """Press keys one after the other and let all that follows happen."""
        for key in keys:
            await self._press(key)
        self.app.screen._on_timer_update()

    async def _press(self, key: str) -> None:
        """Press one key, as Textual's pilot does, but wait for empty queues instead of an idle processor."""
        name = _character_to_key(key) if len(key) == 1 else key
        character = {"space": " ", "slash": "/"}.get(key, key if len(key) == 1 else None)
        self.app.post_message(Key(name, character))
        await self._quiet()

    async def _quiet(self) -> None:
        """Wait until no message is waiting anywhere, three times in a row."""
        calm = 0
        while calm < 3 and not self.app._exit and self.app._exception is None:
            if not await self._handled():
                return
            await self.pilot._wait_for_screen()
            await asyncio.sleep(0.001)
            pumps = [self.app, *self.app.screen_stack, *self.app.screen.walk_children()]
            calm = calm + 1 if all(pump._message_queue.empty() for pump in pumps) else 0

    async def _handled(self) -> bool:
        """Wait until the application has handled what it got so far; False if it's ending."""
        done = asyncio.Event()
        if not self.app.call_later(done.set):
            return False
        waits = [asyncio.ensure_future(event.wait()) for event in (done, self.app._exception_event)]
        try:
            # An application that ends while it handles this never answers.
            while not done.is_set() and not self.app._exit and self.app._exception is None:
                await asyncio.wait(waits, timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return done.is_set()

    async def type(self, text: str) -> None:
        """Type text into the focused entry, as a paste."""
        self.app.post_message(Paste(text))
        await self.settle()

    async def settle(self) -> None:
        """Let all posted messages be handled and the screen be drawn."""
        await self._quiet()
        self.app.screen._on_timer_update()
        await self._quiet()

    async def change(self, **fields: Any) -> None:
        """Let the swarm show a newer picture."""
        self.swarm.change(**fields)
        self.app.refresh_view()
        await self.settle()

    async def until(self, true: Callable[[], bool], seconds: float = 90.0) -> None:
        """Wait for something that another thread does."""
        async with asyncio.timeout(seconds):
            while not true():
                await self.pilot.pause(0.01)

    def text(self) -> str:
        """Return what the screen shows."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    def toasts(self) -> list[str]:
        """Return the texts of the toasts shown so far, oldest first."""
        return [note.message for note in self.app._notifications]

    @property
    def screen(self) -> str:
        """The name of the topmost screen."""
        return type(self.app.screen).__name__


Scenario = Callable[[Driver], Awaitable[None]]


def drive(
    scenario: Scenario,
    view: SwarmView | None = None,
    size: tuple[int, int] = WIDE,
    *,
    keys: dict[str, str] | None = None,
    goal: str | None = None,
    swarm: FakeSwarm | None = None,
    start: bool = True,
    joins: bool = False,
) -> SwarmApp:
    """Run a scenario on a fresh terminal; returns the application after its end."""
    swarm = swarm or FakeSwarm(view)
    app = SwarmApp(swarm, SampleConfig(joins=joins, keys=keys or {}), goal, now=now)
    app.NOTIFICATION_TIMEOUT = 3600  # however slow the machine is, a toast is there to be asked for

    async def run() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            driver = Driver(pilot, app, swarm)
            if start:
                await driver.until(lambda: app.started or bool(app.failure))
            await driver.settle()
            await scenario(driver)

    asyncio.run(run())
    return app
