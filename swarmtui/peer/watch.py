"""How agents wait for something to happen."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import trio

from swarmtui.plan.state import Changes


class Watch:
    """Collects the changes of a peer's plans between two waits. Use as a context manager."""

    def __init__(self, presence: bool, closed: Callable[[Watch], None]) -> None:
        self.presence = presence
        """Presence wakes it, too (with empty changes)."""
        self._closed = closed
        self._changes = Changes()
        self._event = trio.Event()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._closed(self)

    @property
    def told(self) -> bool:
        """Whether there is something to take: changes, or a presence."""
        return self._event.is_set()

    async def until_told(self) -> None:
        """Wait for something to take."""
        await self._event.wait()

    async def wait(self) -> Changes:
        """Return all changes since the last call, as soon as there are any. Cancelling it loses none."""
        await self.until_told()
        return self.take()

    def take(self) -> Changes:
        """Return all changes since the last call, though there may be none."""
        self._event = trio.Event()
        changes, self._changes = self._changes, Changes()
        return changes

    def tell(self, changes: Changes) -> None:
        """The peer has changed, or its owner wants whoever waits to look."""
        self._changes.added += changes.added
        self._changes.tasks |= changes.tasks
        self._changes.plans |= changes.plans
        self._event.set()
