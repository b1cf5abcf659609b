"""Two hosts on one machine: network namespaces with a cable between them that loses packets and is pulled out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .cable import Cable
from .process import Process

pytestmark = pytest.mark.real
DEADLINE_S = 150.0
LOSS = 0.15


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
    if loss and (why := cable.lose(loss)):
        pytest.skip(why)
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
            host.ask(seconds=150)
        hosts[0].ask("goal Plan a party", 150)
        _until(hosts, lambda states: all(state["done"] for state in states))
        cable.plug("down")
        hosts[1].ask("goal Plan a feast", 150)
        hosts[0].ask("goal Plan a walk", 150)
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
