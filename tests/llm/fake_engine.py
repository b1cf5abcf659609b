"""An engine without a model, for tests of the client: does what the prompt says. Runs as a script."""

import os
import signal
import sys

from swarmtui.llm import wire


def say(*messages):
    sys.stdout.buffer.write(b"".join(map(wire.frame, messages)))
    sys.stdout.buffer.flush()


def answer(message):
    prompt = message.prompt if isinstance(message, wire.Generate) else ""
    if prompt == "die":
        print("dying", file=sys.stderr, flush=True)
        os._exit(7)
    if prompt == "garbage":
        sys.stdout.buffer.write(b"\xff" * 64)
        sys.stdout.buffer.flush()
        return
    say(wire.Piece(message.id, prompt))
    if prompt == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if prompt != "hang":
        say(
            wire.Done(
                id=message.id,
                text=prompt,
                value=None,
                tokens_in=10,
                tokens_cached=4,
                tokens_out=1,
                cut=False,
            )
        )


def main():
    order = wire.read(sys.stdin.buffer)
    if order is None or "die at once" in order.path:
        os._exit(9)
    if "never ready" in order.path:
        say(wire.Beat(0.0))
        os.kill(os.getpid(), signal.SIGSTOP)
    slots = 3 if "three" in order.path else 1
    speeds = [wire.Speed(1, 10.0, 0.01), wire.Speed(4, 20.0, 0.01)] if order.measure else []
    say(
        wire.Beat(60.0),
        wire.Ready(
            slots=slots,
            context=512,
            threads=1,
            notices=["a fake"],
            express=1,
            width=order.width or 3,
            prefill=100.0 if order.measure else 0.0,
            speeds=speeds,
        ),
    )
    while (message := wire.read(sys.stdin.buffer)) is not None:
        if isinstance(message, wire.Cancel):
            say(wire.Stopped(message.id, 7, 2))
        else:
            answer(message)


if __name__ == "__main__":
    main()
