"""What a peer does with what it knows: decomposers, scorers, executors; and the operator's voice."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from swarmtui.llm.model import Model

from .agent import Agent
from .decomposer import Decomposer
from .executor import Executor
from .prompting import PromptError, Prompts
from .scorer import Scorer
from .settings import AgentSettings
from .status import Status

if TYPE_CHECKING:
    from swarmtui.peer.peer import Peer

__all__ = ["ROLES", "Agent", "AgentSettings", "PromptError", "Prompts", "Status", "make"]

ROLES: dict[str, type[Agent]] = {kind.role: kind for kind in (Decomposer, Scorer, Executor)}


def make(role: str, peer: Peer, model: Model, rng: random.Random, settings: AgentSettings | None = None) -> Agent:
    """An agent of this role.

    Raises:
        KeyError: there is no such role.
    """
    return ROLES[role](peer, model, rng, settings)
