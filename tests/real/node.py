"""A tiny node for the tests with processes: prints what happens, one JSON line each; publishes what it reads.

python tests/real/node.py NAME [--join ADDRESS …] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
from pathlib import Path

import trio

from swarmtui.peer.libp2p import Libp2pNetwork
from swarmtui.peer.network import Event, Frame


class Seed:
    def __init__(self, name: str) -> None:
        self.seed = hashlib.sha256(f"test {name}".encode()).digest()


def say(what: str, detail: object) -> None:
    print(json.dumps([what, detail]), flush=True)


async def answer(peer: str, request: bytes) -> bytes:
    return b"echo " + request


async def listen(events: trio.MemoryReceiveChannel[Event]) -> None:
    async for event in events:
        if isinstance(event, Frame):
            say("Frame", event.data.decode())
        else:
            say(type(event).__name__, event.peer)


async def speak(network: Libp2pNetwork) -> None:
    """Not by wrap_file(sys.stdin): a thread that reads can't be cancelled."""
    rest = b""
    async with trio.lowlevel.FdStream(os.dup(0)) as stdin:
        async for piece in stdin:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                await network.publish(line)
    await trio.sleep_forever()


async def end_politely(scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--join", nargs="*", default=[])
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    network = Libp2pNetwork(Seed(options.name), "test", mdns=False, join=options.join, folder=options.folder)
    send, receive = trio.open_memory_channel[Event](100)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(end_politely, nursery.cancel_scope)
        await nursery.start(network.run, send, answer, lambda data: True)
        nursery.start_soon(listen, receive)
        say("address", network.addresses[0])
        await speak(network)


if __name__ == "__main__":
    trio.run(main)
