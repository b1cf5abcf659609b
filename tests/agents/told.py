"""A model that says what it's told to, whatever it's asked."""

from __future__ import annotations

from typing import Any

from swarmtui.llm.model import Likelihood, ModelError, Reply, Request


class Told:
    """Gives its answers in turn; the last again and again.

    Args:
        answers: texts, or values for requests with a schema.
        name: one with a size ("135M") makes agents treat it as small.
        cut: every answer reached its limit.
    """

    def __init__(self, *answers: Any, name: str = "told", cut: bool = False) -> None:
        self.name = name
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.cut = cut

    async def generate(self, request: Request, on_text: object = None) -> Reply:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Reply(text=answer if isinstance(answer, str) else "", value=answer, cut=self.cut)

    async def likelihood(self, request: Likelihood) -> list[float]:
        raise ModelError("can't")
