"""How one agent works, and how much its model can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from swarmtui.llm.model import Model

from .prompting import Prompts

UNKNOWN_ROOM = 3_600
ANSWER_TOKENS = 700


@cache
def default_prompts() -> Prompts:
    """The prompts that come with the package, read once."""
    return Prompts.load()


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How one agent works. The plan's policy says what it works for."""

    name: str = ""
    """Its short name for people; also tells the model's requests apart."""
    angle: str = ""
    """A decomposer's first angle ('' for one by chance)."""
    skills: tuple[str, ...] = ()
    """What an executor can do; empty: write."""
    prompts: Prompts = field(default_factory=default_prompts)
    redraws: int = 3
    """Further drafts that are asked for when one fails the checks."""
    work_tokens: int = 400
    """Longest result, in tokens."""


def room_of(model: Model) -> int:
    """Characters that a prompt for this model may have, leaving room for the answer: what comes from elsewhere in the
    plan is shortened to fit.

    A model that tells its `context` in tokens gets about two and a half characters a token: less than English has, more
    than most other scripts.
    """
    tokens = getattr(model, "context", 0)
    if not isinstance(tokens, int) or tokens <= 0:
        return UNKNOWN_ROOM
    return max(1_000, min(24_000, int(2.5 * (tokens - ANSWER_TOKENS))))
