"""The door between the screen's thread and the swarm's: commands in, pictures out."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import trio

from swarmtui.config import Config, with_model
from swarmtui.plan.ops import AnyAct, OpId, PeerId, Policy
from swarmtui.view import ModelChoice, Role, SwarmView

from .choices import choices
from .crew import Crew
from .errors import SwarmError, first

log = logging.getLogger(__name__)

COLLECTOR = (50_000, 20, 50)
"""Thresholds of Python's garbage collector. A replica is a large graph that lives long: with the usual ones, looking
through it again and again costs a third of the fold at 100,000 ops (tests/benchmarks/fold.py)."""


class Swarm:
    """Every local peer and agent, run by trio in a thread of their own.

    The methods may be called from any thread. A command returns a future whose result is a sentence for the person;
    it raises :class:`SwarmError` with a reason and a remedy when the command can't be carried out. Cancelling the
    future has no effect on the command.
    """

    def __init__(self, config: Config, *, resume: bool = True, listen_only: bool = False) -> None:
        """
        Args:
            config: what to run.
            resume: take up the newest unfinished plan of the data folder. False: only what is given from now on.
            listen_only: an observer and nothing else: no operator, so goals can't be given, and nothing is ever sent.
        """
        self.config = config
        self._hire = partial(Crew, resume=resume, listen_only=listen_only)
        self._crew = self._hire(config)
        self._thread: threading.Thread | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._ready: Future[None] = Future()
        self._error: SwarmError | None = None

    @property
    def latest(self) -> SwarmView:
        """The newest picture; a new object whenever something differs."""
        return self._crew.picture

    @property
    def error(self) -> SwarmError | None:
        """Why the swarm has ended by itself; None while it runs or after `stop`."""
        return self._error

    @property
    def summary(self) -> dict[str, Any]:
        """Figures of the run so far: calls by purpose, tokens, ops, seconds."""
        return self._crew.summary()

    def start(self, model: str = "") -> None:
        """Load the model, start the peers and agents; returns when they run.

        After a start that failed it may be called again.

        Args:
            model: instead of what is configured, for all agents.

        Raises:
            SwarmError: no model, or no network at all.
        """
        gc.set_threshold(*COLLECTOR)
        if model:
            self.config = with_model(self.config, model)
        if self._thread is not None or model:
            self._crew, self._ready, self._error, self._token = self._hire(self.config), Future(), None, None
        self._thread = threading.Thread(target=self._run, name="swarm", daemon=False)
        self._thread.start()
        self._ready.result()

    def stop(self, timeout: float = 10.0) -> bool:
        """End every agent, peer and child politely. Returns False if the thread is still there after `timeout` s."""
        if self._thread is None:
            return True
        if self._token is not None:
            try:
                self._token.run_sync_soon(self._crew.stop)
            except trio.RunFinishedError:
                pass
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def give_goal(self, title: str, detail: str = "", policy: Policy | None = None) -> Future[str]:
        """Start a plan and show it. Without a policy the configured one is used."""
        return self._command(lambda: self._crew.give_goal(title, detail, policy))

    def add_agent(
        self, role: Role, *, name: str = "", angle: str = "", model: str = "", skills: Sequence[str] = ()
    ) -> Future[str]:
        """Start one more local agent."""
        return self._command(lambda: self._crew.add(role, name=name, angle=angle, model=model, skills=tuple(skills)))

    def models(self) -> tuple[ModelChoice, ...]:
        """The models that agents may use, and those that they can't. Reads folders: blocks for as long."""
        return choices(self.config)

    def use_model(self, spec: str, peer: PeerId = "") -> Future[str]:
        """Let a local agent use another model; without a peer, all agents that are added from now on."""
        return self._command(lambda: self._crew.use_model(spec, peer))

    def kill(self, peer: PeerId) -> Future[str]:
        """Let a local agent leave: it gives back its claim and says goodbye."""
        return self._command(lambda: self._crew.kill(peer))

    def crash(self, peer: PeerId) -> Future[str]:
        """End a local agent at once, without a goodbye, as a power cut would."""
        return self._command(lambda: self._crew.crash(peer))

    def pause_agent(self, peer: PeerId, on: bool) -> Future[str]:
        """Let a local agent rest, or go on."""
        return self._command(lambda: self._crew.pause(peer, on))

    def steer(self, plan: OpId, act: AnyAct) -> Future[str]:
        """Say the operator's decision on a plan that was given here."""
        return self._command(lambda: self._crew.steer(plan, act))

    def show_plan(self, plan: OpId) -> Future[str]:
        """Show another of the plans that are held."""
        return self._command(lambda: self._crew.show(plan))

    def connect(self, address: str) -> Future[str]:
        """Join a peer elsewhere by its multiaddr."""
        return self._command(lambda: self._crew.connect(address))

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:
            self._error = _reason(error)
            log.exception("the swarm ended")
        if not self._ready.done():
            self._ready.set_exception(self._error or SwarmError("the swarm was stopped before it had started"))

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        await self._crew.run(lambda: self._ready.set_result(None))

    def _command(self, act: Callable[[], Awaitable[str]]) -> Future[str]:
        future: Future[str] = Future()
        future.set_running_or_notify_cancel()  # what can't be cancelled can always be given its result

        async def perform() -> None:
            try:
                future.set_result(await act())
            except trio.Cancelled:
                future.set_exception(SwarmError("the swarm is stopping"))
                raise
            except Exception as error:
                if not isinstance(error, SwarmError):
                    log.exception("a command failed")
                future.set_exception(_reason(error))

        def enter() -> None:
            if not self._crew.start_soon(perform):
                future.set_exception(SwarmError("the swarm isn't running"))

        try:
            if self._token is None:
                raise trio.RunFinishedError
            self._token.run_sync_soon(enter)
        except trio.RunFinishedError:
            future.set_exception(SwarmError("the swarm isn't running"))
        return future


def _reason(error: BaseException) -> SwarmError:
    """The first thing that went wrong, as an error for people."""
    error = first(error)
    if isinstance(error, SwarmError):
        return error
    return SwarmError(str(error) or type(error).__name__, getattr(error, "remedy", ""))
