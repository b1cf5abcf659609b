"""The network between processes: how the others notice one that leaves, dies, hangs or returns."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from swarmtui.peer.libp2p import Libp2pNetwork
from swarmtui.peer.network import Event

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
DEADLINE = 150.0


class Process:
    """A node in a process of its own."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.said: list[list[Any]] = []
        self.news = trio.lowlevel.ParkingLot()

    @property
    def address(self) -> str:
        return next(detail for what, detail in self.said if what == "address")

    @property
    def peer(self) -> str:
        return self.address.rsplit("/", 1)[1]

    async def read(self) -> None:
        pipe = self.process.stdout
        assert pipe is not None
        rest = b""
        with contextlib.suppress(trio.ClosedResourceError):
            async for piece in pipe:
                *lines, rest = (rest + piece).split(b"\n")
                self.said += [json.loads(line) for line in lines]
                self.news.unpark_all()

    async def until(self, what: str, detail: object = None, count: int = 1) -> float:
        """Wait until it has said this so often; how long that took, in seconds."""
        begun = trio.current_time()
        with trio.fail_after(DEADLINE):
            while sum(w == what and detail in (None, d) for w, d in self.said) < count:
                await self.news.park()
        return trio.current_time() - begun

    async def publish(self, text: str) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all(text.encode() + b"\n")


@asynccontextmanager
async def nodes(*names: str) -> AsyncIterator[list[Process]]:
    """Processes; each joins the first."""
    async with trio.open_nursery() as nursery:
        started: list[Process] = []
        try:
            for name in names:
                joins = [started[0].address] if started else []
                started.append(await spawn(nursery, name, *(["--join", *joins] if joins else [])))
            yield started
        finally:
            with trio.CancelScope(shield=True):
                for each in started:
                    await end(each)
        nursery.cancel_scope.cancel()


async def spawn(nursery: trio.Nursery, name: str, *options: str) -> Process:
    command: Sequence[str] = [sys.executable, str(ROOT / "tests/real/node.py"), name, *options]
    process = await trio.lowlevel.open_process(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    node = Process(process)
    nursery.start_soon(node.read)
    await node.until("address")
    return node


async def end(node: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        node.process.send_signal(signal.SIGCONT)
        node.process.kill()
    await node.process.wait()


async def test_leaving_dying_hanging_and_returning() -> None:
    async with nodes("one", "two", "three") as (one, two, three):
        await one.until("Joined", two.peer)
        await one.until("Joined", three.peer)

        two.process.terminate()
        assert await one.until("Left", two.peer) < 10
        with trio.fail_after(DEADLINE):
            assert await two.process.wait() == 0

        three.process.send_signal(signal.SIGSTOP)
        await one.until("Left", three.peer)
        three.process.send_signal(signal.SIGCONT)
        await one.until("Joined", three.peer, count=2)
        await three.until("Joined", one.peer, count=2)
        await three.publish("back again")
        await one.until("Frame", "back again")

        three.process.kill()
        assert await one.until("Left", three.peer, count=2) < 10
        await one.publish("anyone?")


async def test_a_process_that_dies_and_returns_with_its_key() -> None:
    async with trio.open_nursery() as nursery:
        one = await spawn(nursery, "one")
        try:
            for life in range(2):
                two = await spawn(nursery, "two", "--join", one.address)
                try:
                    await two.until("Joined", one.peer)
                    await one.until("Joined", two.peer, count=life + 1)
                    await two.publish(f"life {life}")
                    await one.until("Frame", f"life {life}")
                    await one.publish(f"hello {life}")
                    await two.until("Frame", f"hello {life}")
                finally:
                    await end(two)
        finally:
            await end(one)
        nursery.cancel_scope.cancel()


async def test_processes_find_each_other_through_the_folder(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        one = await spawn(nursery, "one", "--folder", str(tmp_path))
        dead = await spawn(nursery, "dead", "--folder", str(tmp_path))
        try:
            await one.until("Joined", dead.peer)
            await end(dead)  # leaves its file behind
            two = await spawn(nursery, "two", "--folder", str(tmp_path))
            try:
                await one.until("Joined", two.peer)
                await two.until("Joined", one.peer)
            finally:
                await end(two)
        finally:
            await end(dead)
            await end(one)
        nursery.cancel_scope.cancel()


def test_nothing_is_left_behind() -> None:
    """No file, socket or thread stays after networks have ended, however often."""

    async def lives(count: int) -> None:
        async def answer(peer: str, request: bytes) -> bytes:
            return request

        async with trio.open_nursery() as nursery:
            networks = [Libp2pNetwork(Seed(n), "leaks", mdns=n == 0) for n in range(count)]
            for number, network in enumerate(networks):
                send, _events = trio.open_memory_channel[Event](1000)
                await nursery.start(network.run, send, answer, lambda data: True)
                for other in networks[:number]:
                    await network.connect(other.addresses[0])
            with trio.fail_after(DEADLINE):
                while any(len(network.neighbours) < count - 1 for network in networks):  # noqa: ASYNC110
                    await trio.sleep(0.02)
            await networks[0].publish(b"x")
            await networks[0].ask(networks[1].peer_id, b"y")
            nursery.cancel_scope.cancel()

    class Seed:
        def __init__(self, number: int) -> None:
            self.seed = bytes([number]) * 32

    def held() -> tuple[int, list[str]]:
        # An idle thread of trio's cache ends by itself after ten seconds.
        threads = [thread.name for thread in threading.enumerate() if not thread.name.startswith("Trio thread")]
        return psutil.Process().num_fds(), threads

    trio.run(lives, 3)  # trio's cache of threads, the resolver and the like
    deadline = time.monotonic() + DEADLINE
    before = held()
    for _ in range(3):
        trio.run(lives, 3)
    while time.monotonic() < deadline:
        after = held()
        if after[0] <= before[0] and len(after[1]) <= len(before[1]):
            return
        time.sleep(0.1)
    pytest.fail(f"descriptors and threads: {before} before, {after} after")
