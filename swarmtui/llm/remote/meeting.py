"""Meeting a model server once, to tell a person what it has and can."""

from __future__ import annotations

import msgspec
import trio

from swarmtui.llm.model import ModelError
from swarmtui.llm.remote.address import parse
from swarmtui.llm.remote.likelihood import Way
from swarmtui.llm.remote.model import RemoteModel


class Met(msgspec.Struct, frozen=True):
    """What a server said."""

    name: str
    judging: Way
    context: int
    slots: int
    notices: tuple[str, ...]

    def in_words(self) -> str:
        """For a person, in one line."""
        judging = "written marks" if self.judging == "none" else "likelihoods"
        context = f"context {self.context:,}, " if self.context else ""
        return f"{self.name}: {context}{self.slots} requests at a time, judges by {judging}"


def meet(spec: str, key: str, key_variable: str, slots: int = 0) -> Met:
    """Ask a server. Blocks; not for use in trio.

    Raises:
        ModelError: the server isn't there, or hasn't the model; with the remedy.
    """
    return trio.run(_meet, RemoteModel(parse(spec), key=key, key_variable=key_variable, slots=slots))


async def _meet(model: RemoteModel) -> Met:
    refusal: ModelError | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(model.run)
        try:
            await model.ready()
        except ModelError as error:
            refusal = error  # Raised in here, it would come out in a group.
        nursery.cancel_scope.cancel()
    if refusal is not None:
        raise refusal
    return Met(model.name, model.judging, model.context, model.slots, tuple(model.notices))
