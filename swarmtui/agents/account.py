"""Who keeps account of what an agent's requests to its model were good for. Whoever starts the agent may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from swarmtui.plan.ops import Op


class Account(Protocol):
    """Keeps account of what an agent's requests to its model went into."""

    def said(self, ops: Sequence[Op]) -> None:
        """Into these ops."""

    def dropped(self) -> None:
        """Into nothing."""
