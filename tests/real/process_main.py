"""A process of its own for a test: a local swarm that answers questions on stdin with lines of JSON on stdout.

python -m tests.real.process_main SETTINGS.json [--listen-only]
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from typing import Any

import psutil
import trio

from swarmtui.config import load
from swarmtui.plan.ops import Claim, Result
from swarmtui.plan.replica import Replica
from swarmtui.swarm import Swarm


class Node:
    """The swarm and what can be asked of it."""

    def __init__(self, swarm: Swarm) -> None:
        self.swarm = swarm
        self.process = psutil.Process()
        self.facts: dict[str, Any] = {}
        self.tasks = 0

    async def look(self) -> str:
        """Fill `facts`. Runs in the swarm's thread, so that nothing moves meanwhile."""
        replica = self.swarm._crew._camera_now.replica
        plans = replica.plans.values()
        self.facts = {
            "fingerprint": replica.fingerprint.hex(),
            "ops": replica.count,
            "goals": [plan.goal.title for plan in plans],
            "done": {plan.id.hex(): plan.done for plan in plans},
            "pictures": {plan.id.hex(): hashlib.sha256(replica.picture(plan.id)).hexdigest() for plan in plans},
            "results": {
                plan.id.hex(): sorted(task.result.id.hex() for task in plan.tasks.values() if task.result)
                for plan in plans
            },
            "faulty": sorted(set().union(*(plan.faulty for plan in plans))),
            "members": {
                peer: member.peer.replica.fingerprint.hex() for peer, member in self.swarm._crew._members.items()
            },
            "notices": [notice.text for notice in self.swarm.latest.notices],
        }
        self.facts |= self.work(replica)
        return ""

    @staticmethod
    def work(replica: Replica) -> dict[str, Any]:
        """Every result op per task, in the order in which they count, and how often a claim was taken over."""
        results: dict[str, list[str]] = {}
        takeovers = 0
        for op in replica.ops():
            if isinstance(op.body, Result) and (claim := replica.get(op.body.claim)) and isinstance(claim.body, Claim):
                results.setdefault(claim.body.task.hex(), []).append(op.id.hex())
            elif isinstance(op.body, Claim) and op.body.prior:
                prior = replica.get(op.body.prior)
                takeovers += prior is not None and prior.author != op.author
        return {"work": results, "takeovers": takeovers}

    async def _count(self) -> str:
        self.tasks = trio.lowlevel.current_statistics().tasks_living
        return ""

    def figures(self) -> dict[str, Any]:
        """What this process takes now; cheap to ask."""
        self.swarm._command(self._count).result(30)
        return {
            "tasks": self.tasks,
            "ops": self.swarm.latest.ops,
            "rss_kb": self.process.memory_info().rss // 1024,
            "fds": self.process.num_fds(),
            "threads": self.process.num_threads(),
            "errors": sum(member.peer.counters.errors for member in list(self.swarm._crew._members.values())),
        }

    def state(self) -> dict[str, Any]:
        self.swarm._command(self.look).result(30)
        view = self.swarm.latest
        return self.facts | {
            "complete": view.complete,
            "agents": {agent.peer: agent.role for agent in view.agents if agent.local},
            # That an author contradicted itself stands in "faulty"; here, what went wrong in an agent.
            "faults": [agent.fault for agent in view.agents if agent.fault and agent.peer not in self.facts["faulty"]],
            "sent": self.swarm.summary["sent"],
            **self.figures(),
        }


def main() -> None:
    with open(sys.argv[1]) as file:
        flags = json.load(file)
    logging.basicConfig(filename=flags["data_dir"] + "/node.log", level=logging.WARNING)
    swarm = Swarm(load(flags, {}, None, "tiny"), listen_only="--listen-only" in sys.argv)
    swarm.start()
    node = Node(swarm)
    try:
        for line in sys.stdin:
            what, _, rest = line.strip().partition(" ")
            if what == "goal":
                swarm.give_goal(rest).result(30)
            if swarm.error:
                answer: dict[str, Any] = {"error": str(swarm.error)}
            else:
                answer = node.figures() if what == "figures" else node.state()
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        swarm.stop()


if __name__ == "__main__":
    main()
