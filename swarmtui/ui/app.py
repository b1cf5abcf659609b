"""The application: starts the swarm, shows its pictures, hands it commands, ends cleanly."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ClassVar, cast

from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.notifications import SeverityLevel

from swarmtui import paths
from swarmtui.goals import parse_goal
from swarmtui.plaintext import many_lines
from swarmtui.plan.narrative import plural
from swarmtui.ui import colours
from swarmtui.ui.actions import Keys
from swarmtui.ui.door import ScreenConfig, SwarmDoor, sentence
from swarmtui.ui.palette import SwarmCommands
from swarmtui.ui.screens.commands import STARTING
from swarmtui.ui.screens.dialogs import Confirm
from swarmtui.ui.screens.failed import FailedScreen, LeavingScreen
from swarmtui.ui.screens.main import MainScreen
from swarmtui.ui.screens.picker import ModelPicker
from swarmtui.ui.screens.window import Window
from swarmtui.ui.states import busy
from swarmtui.view import ModelChoice

LOG = logging.getLogger(__name__)
REDRAW_S = 0.1
"""Pictures are read this often, at most."""
STOP_S = 8.0
"""How long the swarm may take to say goodbye when the terminal closes."""
SIGTERM_EXIT = 128 + signal.SIGTERM
SIGHUP_EXIT = 128 + signal.SIGHUP
SIGINT_EXIT = 128 + signal.SIGINT

Command = Callable[[SwarmDoor], "Future[str]"]


class Outcome(Message):
    """A command's future has ended (posted from whatever thread ended it)."""

    def __init__(self, future: Future[str]) -> None:
        super().__init__()
        self.future = future


class SwarmApp(App[int]):
    """One main screen over one swarm."""

    TITLE = "swarmtui"
    COMMANDS: ClassVar[set[Any]] = {SwarmCommands}
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "Quit", show=False, priority=True),
        Binding("ctrl+q", "interrupt", "Quit", show=False, priority=True),
    ]
    NOTIFICATION_TIMEOUT = 6
    TOASTS = 4
    """So many toasts stand over the panels at most; the oldest gives way."""

    def __init__(
        self,
        swarm: SwarmDoor,
        config: ScreenConfig,
        goal: str | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Make the application; nothing starts yet.

        Args:
            swarm: The door to the local swarm, not started.
            config: Keys, and what is told about model and preset.
            goal: Given at once when the swarm has started.
            now: Unix seconds, for ages.

        Raises:
            KeyConfigError: the config's keys can't be used.
        """
        self.keys = Keys(config.keys)
        super().__init__(css_path=paths.stylesheet())
        self.swarm = swarm
        self.config = config
        self.now = now
        self.main = _bound_main(self.keys)(self.keys, now)
        self.started = False
        self.failure = ""
        self._goal = goal
        self._begun = False
        self._leaving = False
        self._hung_up = False
        self._shown_version: int | None = None
        self._tick = 0
        self.register_theme(colours.DARK)
        self.register_theme(colours.LIGHT)
        self.theme = colours.fitting(os.environ)

    # Life

    def on_resize(self, event: Resize) -> None:
        """Tell the main screen under a window, too: Textual tells the topmost alone."""
        if self.main.is_mounted and self.screen is not self.main:
            self.main.fit(event.size)

    async def on_mount(self) -> None:
        self._watch_signals()
        await self.push_screen(self.main)
        self.refresh_view()
        self.set_interval(REDRAW_S, self.refresh_view)
        self.run_worker(self._start(), name="start", exit_on_error=False)

    async def _start(self, model: str = "") -> None:
        self._begun = True
        try:
            await asyncio.to_thread(self.swarm.start, model)
        except Exception as error:
            LOG.warning("the swarm didn't start: %s", error)
            self.failure = sentence(error)
            await self.push_screen(FailedScreen(self.failure, another_model=getattr(error, "another_model", False)))
            return
        self.started = True
        self._shown_version = None
        self.refresh_view()
        self._open_with_goal()

    def on_failed_screen_another_model(self, event: FailedScreen.AnotherModel) -> None:
        if self.screen is not event.window:
            return

        def chosen(choice: ModelChoice | None) -> None:
            if choice is not None:
                self.failure, self._shown_version = "", None
                self.pop_screen()
                self.say(f"Loading {choice.name} …")
                self.run_worker(self._start(choice.spec), name="start", exit_on_error=False)

        self.push_screen(ModelPicker("Start with another model", self.swarm.models), chosen)

    def _open_with_goal(self) -> None:
        """Give the goal of the command line, or ask for one when there is no plan and none may come from others."""
        if self._goal is not None:
            try:
                goal = parse_goal(self._goal)
            except ValueError as error:
                self.say(str(error), "error")
                self.main.open_goal(self._goal[:5000])
            else:
                self.ask(lambda swarm: swarm.give_goal(goal.title, goal.detail))
        elif self.swarm.latest.plan is None and not self.swarm.latest.plans and not self.config.joins:
            self.main.open_goal()

    async def on_unmount(self) -> None:
        await self._stop_swarm()

    async def _stop_swarm(self) -> None:
        if not self._begun:
            return
        try:
            await asyncio.wait_for(asyncio.to_thread(self.swarm.stop, STOP_S), STOP_S + 1)
        except Exception as error:
            LOG.warning("the swarm didn't stop as it should: %s: %s", type(error).__name__, error)
        self._begun = False

    def leave(self, code: int = 0) -> None:
        """Stop the swarm while a word on the screen says so, then end; asked twice, end at once."""
        if self._leaving:
            self.exit(code, return_code=code)
            return

        async def goodbye() -> None:
            await self._stop_swarm()
            self.exit(code, return_code=code)

        self._leaving = True
        self.push_screen(LeavingScreen())
        self.run_worker(goodbye(), name="goodbye", exit_on_error=False)

    def _watch_signals(self) -> None:
        """SIGTERM ends with a clean terminal, SIGHUP without one; SIGINT asks first."""
        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGTERM, self.leave, SIGTERM_EXIT)
            # Not by the loop: it may stand still by then, waiting for Textual's dead writer.
            signal.signal(signal.SIGHUP, lambda *_: self._hang_up())
            loop.add_signal_handler(signal.SIGINT, self.action_interrupt)
        except (NotImplementedError, RuntimeError, ValueError):  # no signals on this system, or not the main thread
            LOG.info("signals can't be watched here")

    def _hang_up(self) -> None:
        """End without drawing anything: the terminal is gone.

        Textual's writer ends at the first failed write, and who waits for it then waits for ever. So the swarm is
        stopped and the process ends here, without Textual's goodbye, also if that has begun.
        """

        def end() -> None:
            try:
                if self._begun:
                    self.swarm.stop(STOP_S)
            finally:
                # Not logging.shutdown: it flushes stderr, too, where the writer may stand. Logs are flushed by line.
                os._exit(SIGHUP_EXIT)

        if not self._hung_up:
            self._hung_up = self._leaving = True
            threading.Thread(target=end, name="hang-up").start()

    def ask_to_quit(self) -> None:
        """Quit; ask first while agents of this program work."""
        if isinstance(self.screen, QuitConfirm):
            return
        working = [agent.name for agent in self.swarm.latest.agents if agent.local and busy(agent)]
        if not working or not self.started:
            self.leave(1 if self.failure else 0)
            return
        names = ", ".join(working[:4]) + (" …" if len(working) > 4 else "")

        def answered(yes: bool | None) -> None:
            if yes:
                self.leave()

        self.push_screen(
            QuitConfirm("Quit?", f"{plural(len(working), 'agent')} at work: {names}. The plan is kept."), answered
        )

    def action_interrupt(self) -> None:
        """Ctrl+C: the first asks like q, the second quits."""
        if isinstance(self.screen, QuitConfirm) or self._leaving:
            self.leave(SIGINT_EXIT)
        else:
            self.ask_to_quit()

    def _fatal_error(self) -> None:
        """End after a bug, without printing any frame's variables: they may hold keys and texts."""
        error = self._exception
        LOG.error("the terminal failed", exc_info=error)
        self.bell()
        what = f"{type(error).__name__}: {many_lines(str(error))}" if error else "unknown"
        self._exit_renderables.append(
            f"swarmtui: the terminal failed ({Content(what).plain[:300]}).\nThe plan is kept; the log has the details."
        )
        self._close_messages_no_wait()

    # The picture

    def refresh_view(self) -> None:
        """Show the newest picture, if it is newer than what is shown; let ages grow once a second."""
        view = self.swarm.latest
        self._tick += 1
        if view.version != self._shown_version:
            self._shown_version = view.version
            self.main.show_view(view, "" if self.started else self._waiting())
        elif self._tick % round(1 / REDRAW_S) == 0:
            self.main.tick()

    def _waiting(self) -> str:
        if self.failure:
            return "not started"
        model = self.swarm.latest.model or self.config.model
        return f"starting · loading model {model} …"

    def told(self) -> list[tuple[str, str]]:
        """Return what will work on a new goal, for the form that asks for it."""
        view = self.swarm.latest
        agents: dict[str, int] = {}
        for agent in view.agents:
            if agent.state != "gone" and agent.role in ("decomposer", "scorer", "executor"):
                agents[agent.role] = agents.get(agent.role, 0) + 1
        model = view.model or self.config.model
        kept = len(view.kept)
        return [
            ("model", f"{model} (scripted: no language model)" if view.scripted and "scripted" not in model else model),
            ("preset", self.config.preset),
            ("agents", ", ".join(plural(count, role) for role, count in agents.items())),
            ("kept", f"{plural(kept, 'plan')}: esc, then {self.keys.key('palette')} to take one up" if kept else ""),
        ]

    def change_colours(self) -> None:
        """Change between dark and light."""
        self.theme = colours.LIGHT.name if self.theme == colours.DARK.name else colours.DARK.name

    # Commands

    def ask(self, command: Command) -> None:
        """Hand a command to the swarm; its outcome becomes a toast."""
        if not self.started:
            self.say(STARTING, "warning")
            return
        try:
            future = command(self.swarm)
        except Exception as error:
            LOG.warning("a command failed: %s", error)
            self.say(sentence(error), "error")
            return
        future.add_done_callback(self._ended)

    def _ended(self, future: Future[str]) -> None:
        try:
            self.post_message(Outcome(future))
        except RuntimeError:
            LOG.info("a command ended after the terminal")

    def on_outcome(self, event: Outcome) -> None:
        if event.future.cancelled():
            self.say("The swarm ended before this was done.", "warning")
            return
        error = event.future.exception()
        if error is not None:
            self.say(sentence(error), "error")
        elif text := event.future.result():
            self.say(text)

    def say(self, text: str, severity: str = "information") -> None:
        """Show a toast; the text is never markup."""
        self.notify(many_lines(text)[:600], severity=cast(SeverityLevel, severity), markup=False)

    def on_notify(self) -> None:
        """Make room for the toast that comes."""
        for old in list(self._notifications)[: -self.TOASTS + 1]:
            self._unnotify(old, refresh=False)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(placeholder="What should happen?"))


class Palette(CommandPalette, Window[None]):
    """Textual's palette, as a window of ours."""


class QuitConfirm(Confirm):
    """Asks before quitting."""


def _bound_main(keys: Keys) -> type[MainScreen]:
    """Return the main screen with a person's own keys."""
    return cast(type[MainScreen], type("MainScreen", (MainScreen,), {"BINDINGS": keys.bindings()}))


def run_app(swarm: SwarmDoor, config: ScreenConfig, goal: str | None = None) -> int:
    """Open the terminal and stay until the person leaves.

    Args:
        swarm: Not started; it's started off the screen's thread, and stopped before this returns.
        config: The configuration.
        goal: Given at once, or None.

    Returns:
        The exit code: 0 left, 1 the start or the screen failed, 130 interrupted twice, 143 ended by SIGTERM.

    Raises:
        KeyConfigError: the config's keys can't be used.
    """
    app = SwarmApp(swarm, config, goal)
    app.run()
    return app.return_code or 0
