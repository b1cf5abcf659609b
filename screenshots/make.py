"""Makes the pictures in this folder: a swarm with the scripted model, drawn by Textual as SVG.

Run it from the top of the checkout: `python screenshots/make.py [NAME …]`. It needs no model and no network, and takes
about a minute. What the pictures show differs from run to run in small things: it's a real swarm.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from swarmtui import config
from swarmtui.swarm import Swarm
from swarmtui.ui.app import SwarmApp
from swarmtui.view import SwarmView

FOLDER = Path(__file__).parent
GOAL = "Plan a two-week trip to Japan"
DEADLINE_S = 120.0

Shots = Callable[["Camera"], Awaitable[None]]


class Camera:
    """Waits for a moment of the swarm, then draws the screen."""

    def __init__(self, pilot: Pilot[int], app: SwarmApp) -> None:
        self.pilot = pilot
        self.app = app

    async def until(self, true: Callable[[SwarmView], bool]) -> None:
        """Wait until a picture of the swarm is as wanted.

        Raises:
            TimeoutError: it wasn't within two minutes.
        """
        async with asyncio.timeout(DEADLINE_S):
            while not true(self.app.swarm.latest):
                await self.pilot.pause(0.02)
        self.app.refresh_view()
        await self.pilot.pause(0.05)

    async def press(self, *keys: str) -> None:
        """Press keys and let the screen settle."""
        await self.pilot.press(*keys)
        await self.pilot.pause(0.1)

    def draw(self, name: str) -> None:
        """Write the screen to NAME.svg."""
        file = FOLDER / f"{name}.svg"
        file.write_text(self.app.export_screenshot(title="swarmtui"), encoding="utf-8")
        sys.stdout.write(f"{file.name}\n")


def counted(view: SwarmView, name: str) -> int:
    """Return one of the plan's counts; 0 without a plan."""
    return view.plan.counts.get(name, 0) if view.plan else 0


async def goal(camera: Camera) -> None:
    """The window that asks for a goal."""
    await camera.until(lambda view: len(view.agents) > 3)
    await camera.pilot.pause(0.5)
    await camera.press(*[key if key != " " else "space" for key in GOAL])
    camera.draw("goal")


async def plan(camera: Camera) -> None:
    """A plan on its way, its votes, and its end."""
    await camera.until(lambda view: counted(view, "drafts") > 0 and view.plan is not None and bool(_votes(view)))
    await camera.press("3", "right", "right")
    camera.draw("votes")
    await camera.press("left", "left", "1", "down", "down")
    await camera.until(lambda view: counted(view, "done") >= 1 and counted(view, "working") >= 1)
    camera.draw("main")
    await camera.until(lambda view: view.plan is not None and view.plan.done)
    await camera.press("g", "3", "right", "right", "right")
    camera.draw("done")


async def narrow(camera: Camera) -> None:
    """80×24: one panel at a time."""
    await camera.until(lambda view: counted(view, "done") >= 1)
    camera.draw("narrow")


def _votes(view: SwarmView) -> list[object]:
    root = view.plan.tasks[view.plan.root] if view.plan else None
    return [vote for draft in root.drafts for vote in draft.votes] if root else []


SHOTS: dict[str, tuple[Shots, str | None, tuple[int, int]]] = {
    "goal": (goal, None, (120, 36)),
    "plan": (plan, GOAL, (120, 36)),
    "narrow": (narrow, GOAL, (80, 24)),
}


async def shoot(name: str) -> None:
    """Run one swarm and draw its pictures."""
    shots, given, size = SHOTS[name]
    with tempfile.TemporaryDirectory() as folder:
        flags = {"model": "scripted", "seed": 7, "data_dir": folder, "swarm.mdns": False, "swarm.name": "screenshots"}
        settings = config.load(flags)
        app = SwarmApp(Swarm(settings), settings, given)
        async with app.run_test(size=size) as pilot:
            await shots(Camera(pilot, app))


def main(names: list[str]) -> int:
    """Draw all pictures, or those of the named scenes."""
    for name in names or list(SHOTS):
        asyncio.run(shoot(name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
