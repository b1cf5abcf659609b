"""Two hosts on one machine: network namespaces with a cable between them that loses packets and is pulled out."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .storm import Process

pytestmark = pytest.mark.real
DEADLINE_S = 150.0
LOSS = 0.15


class Cable:
    """Two namespaces, joined by a veth pair."""

    def __init__(self) -> None:
        tag = uuid.uuid4().hex[:6]
        self.ends = [f"swarm-{tag}a", f"swarm-{tag}b"]
        self.links = [f"sw{tag}a", f"sw{tag}b"]
        self.ips = ["10.213.7.1", "10.213.7.2"]

    def lay(self) -> str:
        """Make it. Returns why it can't be made, or ''."""
        if os.geteuid() != 0 or not shutil.which("ip"):
            return "network namespaces need root and iproute2"
        for end in self.ends:
            if said := _try("ip", "netns", "add", end):
                return f"no network namespaces here: {said}"
        if said := _try("ip", "link", "add", self.links[0], "type", "veth", "peer", "name", self.links[1]):
            return f"no veth here: {said}"
        for end, link, ip in zip(self.ends, self.links, self.ips, strict=True):
            _do("ip", "link", "set", link, "netns", end)
            self.inside(end, "ip", "address", "add", f"{ip}/24", "dev", link)
            self.inside(end, "ip", "link", "set", link, "up")
            self.inside(end, "ip", "link", "set", "lo", "up")
        return ""

    def inside(self, end: str, *command: str) -> None:
        _do("ip", "netns", "exec", end, *command)

    def lose(self, share: float) -> None:
        """Lose a share of the packets that arrive at either end."""
        rule = ["-m", "statistic", "--mode", "random", "--probability", str(share), "-j", "DROP"]
        for end, link in zip(self.ends, self.links, strict=True):
            self.inside(end, "iptables", "-A", "INPUT", "-i", link, *rule)

    def plug(self, state: str) -> None:
        self.inside(self.ends[0], "ip", "link", "set", self.links[0], state)

    def remove(self) -> None:
        for end in self.ends:
            _try("ip", "netns", "delete", end)  # its end of the cable goes along


def _try(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stderr.strip() or f"exit {done.returncode}") if done.returncode else ""


def _do(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def cable() -> Iterator[Cable]:
    one = Cable()
    try:
        if why := one.lay():
            pytest.skip(why)
        yield one
    finally:
        one.remove()


@pytest.mark.parametrize("loss", [0.0, LOSS])
def test_a_partition_between_two_hosts_heals(tmp_path: Path, cable: Cable, loss: float) -> None:
    if loss:
        if not shutil.which("iptables"):
            pytest.skip("losing packets needs iptables")
        cable.lose(loss)
    hosts = []
    for end, ip, roles in zip(
        cable.ends,
        cable.ips,
        ({"agents.decomposers": 1, "agents.scorers": 2}, {"agents.scorers": 1, "agents.executors": 2}),
        strict=True,
    ):
        host = Process(tmp_path / end, "scorers", f"cable-{end[:-1]}", ip=ip, within=["ip", "netns", "exec", end])
        host.flags |= roles
        hosts.append(host)
    try:
        for host in hosts:
            host.start([other.address for other in hosts if other is not host])
        for host in hosts:
            host.ask(seconds=60)
        hosts[0].ask("goal Plan a party", 60)
        _until(hosts, lambda states: all(state["done"] for state in states))
        cable.plug("down")
        hosts[1].ask("goal Plan a feast", 60)
        hosts[0].ask("goal Plan a walk", 60)
        # Each side learns of its own goal alone, and does what it can.
        _until(hosts, lambda states: all(len(state["done"]) == 2 for state in states))
        assert len({state["fingerprint"] for state in (host.ask() for host in hosts)}) == 2
        cable.plug("up")
        states = _until(
            hosts,
            lambda states: (
                len({state["fingerprint"] for state in states}) == 1
                and all(len(state["done"]) == 3 and all(state["done"].values()) for state in states)
            ),
        )
        assert states[0]["pictures"] == states[1]["pictures"]
        assert not states[0]["faulty"]
    finally:
        for host in hosts:
            host.kill()


def _until(hosts: list[Process], true: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    end = time.monotonic() + DEADLINE_S
    while True:
        states = [host.ask() for host in hosts]
        if true(states):
            return states
        assert time.monotonic() < end, states
        time.sleep(0.1)
