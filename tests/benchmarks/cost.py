"""What it all costs, each figure beside its target. Exits with 1 if one is missed.

    python -m tests.benchmarks.cost [--json FILE] [--idle SECONDS] [--skip-network] [--skip-idle]

- Taking in ops: bytes to signature to decoded to folded, against bare Ed25519 verification by the fastest library here,
  in the same run.
- The fold alone, and how it grows. pycrdt applying as many updates stands beside it, if it's installed (pip install
  pycrdt): a yardstick without rules and without signatures.
- CPU per delivered message over real libp2p, as libp2p comes and as we run it.
- Ten agents of the real swarm that have nothing to do: before any plan, and when one is done.

Rates are of CPU time. The network and idle figures want a quiet machine.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import trio

from swarmtui import config
from swarmtui.plan.envelope import SIGNED_PREFIX, to_wire, verify_key
from swarmtui.plan.ops import Op
from swarmtui.swarm import Swarm
from swarmtui.swarm.door import COLLECTOR

from . import network
from .fold import add_singly, bare_verify, from_wire, history, rates

LARGE, SMALL, SIGNED = 100_000, 1_000, 2_000
AGENTS = {"agents.decomposers": 3, "agents.scorers": 4, "agents.executors": 3}
SETTLE_S = 15.0
DEADLINE_S = 300.0


class Report:
    """Lines for a person, figures for a program."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self.missed: list[str] = []

    def tell(self, name: str, value: float, unit: str, target: str = "", good: bool = True) -> None:
        self.figures[name] = round(value, 4)
        if not good:
            self.missed.append(name)
        verdict = f"   target {target}: {'met' if good else 'MISSED'}" if target else ""
        print(f"{name:58} {value:12,.2f} {unit}{verdict}", flush=True)


# -- ops


def ops_cost(report: Report) -> None:
    gc.set_threshold(*COLLECTOR)  # as the program does
    ops = [op for op, _ in zip(history(), range(LARGE), strict=False)]
    few = ops[:SIGNED]
    wires = [to_wire(op) for op in few]
    runs: dict[str, tuple[int, Callable[[], object]]] = {
        "PyNaCl": (SIGNED, lambda: bare_verify(few)),
        "taken in": (SIGNED, lambda: from_wire(wires)),
    }
    if other := _cryptography(few):
        runs["cryptography"] = (SIGNED, other)
    found = rates(9, **runs)
    taken = found.pop("taken in")
    for name, rate in found.items():
        report.tell(f"bare Ed25519 verification, {name}", rate, "/s")
    report.tell("ops taken in (bytes, signature, decoded, folded)", taken, "/s")
    share = taken / max(found.values())
    report.tell("   of the faster bare verification", 100 * share, "%", ">= 60 %", share >= 0.6)
    fold = rates(5, small=(SMALL, lambda: add_singly(ops[:SMALL])), large=(LARGE, lambda: add_singly(ops)))
    for name, size in (("small", SMALL), ("large", LARGE)):
        report.tell(f"fold alone, {size:,} ops", fold[name], "/s", ">= 30,000", fold[name] >= 30_000)
    ratio = fold["small"] / fold["large"]
    report.tell(f"   cost of an op at {LARGE:,} against {SMALL:,}", ratio, "x", "<= 1.3", ratio <= 1.3)
    if crdt := _pycrdt(LARGE):
        report.tell(f"yardstick: pycrdt applies {LARGE:,} updates", rates(2, crdt=(LARGE, crdt))["crdt"], "/s")


def _cryptography(ops: Sequence[Op]) -> Callable[[], object] | None:
    """The same verification by the other library that libp2p brings."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return None
    keys = {op.author: Ed25519PublicKey.from_public_bytes(bytes(verify_key(op.author))) for op in ops}

    def verify() -> None:
        for op in ops:
            keys[op.author].verify(op.signature, SIGNED_PREFIX + op.payload)

    return verify


def _pycrdt(count: int) -> Callable[[], object] | None:
    try:
        from pycrdt import Doc, Map
    except ImportError:
        print("   (pycrdt isn't installed: no yardstick)")
        return None
    doc: Doc[object] = Doc()
    updates: list[bytes] = []
    said: Map[str] = doc.get("said", type=Map)
    watching = doc.observe(lambda event: updates.append(event.update))
    for number in range(count):
        said[str(number)] = "x" * 100
    doc.unobserve(watching)

    def apply() -> None:
        fresh: Doc[object] = Doc()
        for update in updates:
            fresh.apply_update(update)

    return apply


# -- the network


def network_cost(report: Report) -> None:
    options = network.options_of([])
    stock = trio.run(network.measure, "stock", network.stock, options)
    tuned = trio.run(network.measure, "tuned", network.tuned, options)
    report.tell("CPU per delivery, libp2p as it comes", stock, "ms")
    report.tell("CPU per delivery, ours", tuned, "ms", "less", tuned < stock)


# -- nothing to do


def idle_cost(report: Report, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        flags = {"model": "scripted", "seed": 1, "data_dir": folder, "swarm.name": f"idle-{os.getpid()}"}
        swarm = Swarm(config.load(flags=flags | AGENTS))
        swarm.start()
        try:
            _wait(lambda: sum(agent.role != "operator" for agent in swarm.latest.agents) == sum(AGENTS.values()))
            _tell_idle(report, "10 idle agents, no plan", seconds)
            swarm.give_goal("Plan a two-week trip to Japan").result(30)
            _wait(lambda: swarm.latest.plan is not None and swarm.latest.plan.done)
            _tell_idle(report, "10 idle agents, plan done", seconds)
        finally:
            swarm.stop()


def _tell_idle(report: Report, name: str, seconds: float) -> None:
    time.sleep(SETTLE_S)
    cpu, wall = time.process_time(), time.perf_counter()
    time.sleep(seconds)
    share = 100 * (time.process_time() - cpu) / (time.perf_counter() - wall)
    report.tell(name, share, "% of a core", "<= 5 %", share <= 5)


def _wait(true: Callable[[], object]) -> None:
    until = time.monotonic() + DEADLINE_S
    while not true():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--idle", type=float, default=45.0, help="seconds to measure idle agents")
    parser.add_argument("--skip-network", action="store_true")
    parser.add_argument("--skip-idle", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    report = Report()
    if not options.skip_idle:  # first: nothing else has filled this process's memory yet
        idle_cost(report, options.idle)
    if not options.skip_network:
        network_cost(report)
    ops_cost(report)
    if options.json:
        options.json.write_text(json.dumps(report.figures, indent=2) + "\n")
    sys.exit(bool(report.missed))


if __name__ == "__main__":
    main()
