"""An engine without a model, for tests of the client: does what the prompt says. Runs as a script."""

import os
import sys

from swarmtui.llm import wire


def say(*messages):
    sys.stdout.buffer.write(b"".join(map(wire.frame, messages)))
    sys.stdout.buffer.flush()


def answer(message):
    prompt = message.prompt if isinstance(message, wire.Generate) else ""
    if prompt == "die":
        os._exit(7)
    if prompt == "garbage":
        sys.stdout.buffer.write(b"\xff" * 64)
        sys.stdout.buffer.flush()
        return
    say(wire.Piece(message.id, prompt, 1))
    if prompt != "hang":
        say(
            wire.Done(
                id=message.id,
                text=prompt,
                value=None,
                tokens_in=1,
                tokens_cached=0,
                tokens_out=1,
                seconds=0.0,
                cut=False,
            )
        )


def main():
    order = wire.read(sys.stdin.buffer)
    if order is None or "die at once" in order.path:
        os._exit(9)
    say(
        wire.Ready(
            name="fake", slots=1, context=512, threads=1, notices=["a fake"],
        )
    )  # fmt: skip
    while (message := wire.read(sys.stdin.buffer)) is not None:
        if isinstance(message, wire.Cancel):
            say(wire.Stopped(message.id))
        else:
            answer(message)


if __name__ == "__main__":
    main()
