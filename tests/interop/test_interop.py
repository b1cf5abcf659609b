"""Somebody else's client, written from docs/protocol.md in another language over another libp2p, in a real swarm."""

from __future__ import annotations

import json
import os
import queue
import re
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import base58
import pytest
from libp2p.peer.id import ID

from swarmtui.config import load
from swarmtui.paths import Folders
from swarmtui.peer.journal import Journal
from swarmtui.peer.libp2p.gossip import SafeGossip
from swarmtui.peer.libp2p.requests import Requests
from swarmtui.plan.replica import Replica
from swarmtui.swarm import Swarm
from swarmtui.view import SwarmView

from .vectors import picture

HERE = Path(__file__).parent
DEADLINE_S = 150.0
Known = dict[str, Any]


@pytest.fixture(scope="module")
def node() -> str:
    """Node, with what npm has to bring. In CI it has to be there."""
    found = shutil.which("node")
    if found and (HERE / "node_modules" / "libp2p").is_dir():
        return found
    reason = "there's no Node" if not found else "js-libp2p isn't installed"
    reason += ": `make interop` installs it (Node 18 or later, and npm)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class Heard:
    """Who was heard, as the author of a gossiped message or the asker of a request, by any peer of this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.authors: set[str] = set()
        self.askers: set[str] = set()
        take, serve = SafeGossip.push_msg, Requests._serve

        async def push_msg(gossip: SafeGossip, forwarder: ID, message: Any) -> None:
            self.authors.add(base58.b58encode(message.from_id).decode())
            await take(gossip, forwarder, message)

        async def serve_noted(requests: Requests, stream: Any) -> None:
            self.askers.add(stream.muxed_conn.peer_id.to_base58())
            await serve(requests, stream)

        monkeypatch.setattr(SafeGossip, "push_msg", push_msg)
        monkeypatch.setattr(Requests, "_serve", serve_noted)


class Observer:
    """The JavaScript observer as a process; `known` is what it said last."""

    def __init__(self, node: str, swarm: str, address: str) -> None:
        command = [node, str(HERE / "observer.js"), "--json", "--swarm", swarm, "--join", address]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._faults: list[str] = []
        assert self._process.stdout is not None and self._process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(self._process.stdout, self._lines.put)),
            threading.Thread(target=self._read, args=(self._process.stderr, self._faults.append)),
        ]
        for reader in self._readers:
            reader.start()
        self.known: Known = {}

    @staticmethod
    def _read(stream: IO[str], put: Callable[[str], None]) -> None:
        with stream:
            for line in stream:
                put(line)

    def until(self, true: Callable[[Known], object]) -> Known:
        """The first thing said that satisfies, or fail."""
        end = time.monotonic() + DEADLINE_S
        while not (self.known and true(self.known)):
            try:
                line = self._lines.get(timeout=min(1.0, max(0.0, end - time.monotonic())))
            except queue.Empty:
                assert self._process.poll() is None, f"the observer has ended: {self._faults}"
                assert time.monotonic() < end, f"not in time; it knows {self.known}, said {self._faults}"
            else:
                self.known = json.loads(line)
        return self.known

    def stop(self) -> int:
        self._process.terminate()
        try:
            return self._process.wait(10)
        finally:
            self._process.kill()
            for reader in self._readers:
                reader.join(5)


@pytest.fixture
def name() -> str:
    return f"interop-{secrets.token_hex(4)}"


@pytest.fixture
def swarm(tmp_path: Path, name: str) -> Iterator[Swarm]:
    flags = {"model": "scripted", "seed": 11, "data_dir": str(tmp_path), "swarm.mdns": False, "swarm.name": name}
    one = Swarm(load(flags, {}, None, "tiny"))
    one.start()
    yield one
    assert one.stop()


def until(swarm: Swarm, true: Callable[[SwarmView], object]) -> SwarmView:
    end = time.monotonic() + DEADLINE_S
    while not true(view := swarm.latest):
        assert time.monotonic() < end, f"not in time: {view}"
        time.sleep(0.02)
    return view


def replica_of(swarm: Swarm, name: str) -> Replica:
    """What the swarm has written down."""
    replica = Replica()
    replica.add_many(Journal(Folders(swarm.config.data_dir).journal(name)).load())
    return replica


@pytest.mark.real
def test_a_javascript_observer_shows_the_same_plan(
    node: str, name: str, swarm: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard(monkeypatch)
    addresses = until(swarm, lambda view: view.addresses and len(view.agents) == 8).addresses
    early = Observer(node, name, addresses[0])
    late = None
    try:
        swarm.give_goal("Bake bread", "for nine, 🥖 and all").result(DEADLINE_S)
        early.until(lambda known: known["plans"])
        view = until(swarm, lambda view: view.plan and view.plan.done and view.complete)
        # One was there all the time, one comes when all is said: it gets everything without a word.
        late = Observer(node, name, addresses[0])
        for observer in (early, late):
            known = observer.until(lambda known: known["complete"] and known["fingerprint"] == swarm.latest.fingerprint)
            assert known["ops"] == swarm.latest.ops
        view = swarm.latest
        assert {agent.peer for agent in view.agents}.isdisjoint({early.known["peer"], late.known["peer"]})
        assert heard.authors
        assert (heard.authors | heard.askers).isdisjoint({early.known["peer"], late.known["peer"]})
    finally:
        codes = [observer.stop() for observer in (early, late) if observer is not None]
    assert codes == [0, 0]
    assert swarm.stop()
    replica = replica_of(swarm, name)
    assert replica.fingerprint.hex() == view.fingerprint
    trees = {plan_id.hex(): picture(plan) for plan_id, plan in replica.plans.items()}
    assert view.plan is not None
    assert trees[view.plan.id.hex()]["done"]
    assert early.known["plans"] == trees
    assert late.known["plans"] == trees


@pytest.mark.real
def test_its_own_tests_pass(node: str) -> None:
    """The vectors, by its fold."""
    done = subprocess.run([node, "--test"], cwd=HERE, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    passed = re.search(r"pass (\d+)", done.stdout)
    assert passed and int(passed[1]) > 100, done.stdout[-4000:]
