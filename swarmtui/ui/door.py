"""What the screen needs from the rest of the program: the shape of :class:`swarmtui.swarm.Swarm` and of its config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from swarmtui.plan.ops import AnyAct, OpId, PeerId, Policy
from swarmtui.view import ModelChoice, Role, SwarmView


class SwarmDoor(Protocol):
    """The local swarm. Every command returns at once; its future gives a sentence for the person, or an error that
    may carry `reason` and `remedy`."""

    @property
    def latest(self) -> SwarmView: ...

    def start(self, model: str = "") -> None: ...

    def stop(self, timeout: float = ...) -> object: ...

    def give_goal(self, title: str, detail: str = "", policy: Policy | None = None) -> Future[str]: ...

    def add_agent(
        self, role: Role, *, name: str = "", angle: str = "", model: str = "", skills: Sequence[str] = ()
    ) -> Future[str]: ...

    def models(self) -> Sequence[ModelChoice]: ...

    def use_model(self, spec: str, peer: PeerId = "") -> Future[str]: ...

    def kill(self, peer: PeerId) -> Future[str]: ...

    def crash(self, peer: PeerId) -> Future[str]: ...

    def pause_agent(self, peer: PeerId, on: bool) -> Future[str]: ...

    def steer(self, plan: OpId, act: AnyAct) -> Future[str]: ...

    def show_plan(self, plan: OpId) -> Future[str]: ...

    def connect(self, address: str) -> Future[str]: ...


class ScreenConfig(Protocol):
    """What the screen reads of the configuration."""

    @property
    def preset(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def joins(self) -> bool: ...

    @property
    def keys(self) -> Mapping[str, str]: ...


def sentence(error: BaseException) -> str:
    """Say in one text what went wrong and what to do about it."""
    reason: Any = getattr(error, "reason", "") or str(error) or type(error).__name__
    remedy: Any = getattr(error, "remedy", "")
    return f"{reason}\n{remedy}" if remedy else str(reason)
