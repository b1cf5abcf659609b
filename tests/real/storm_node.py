"""One process of a storm: a local swarm that answers questions on stdin with lines of JSON on stdout.

python -m tests.real.storm_node SETTINGS.json [--listen-only]
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
from swarmtui.swarm import Swarm


class Node:
    """The swarm and what can be asked of it."""

    def __init__(self, swarm: Swarm) -> None:
        self.swarm = swarm
        self.process = psutil.Process()
        self.facts: dict[str, Any] = {}

    async def look(self) -> str:
        """Fill `facts`. Runs in the swarm's thread, so that nothing moves meanwhile."""
        replica = self.swarm._crew._camera_now.replica
        plans = replica.plans.values()
        self.facts = {
            "fingerprint": replica.fingerprint.hex(),
            "ops": replica.count,
            "done": {plan.id.hex(): plan.done for plan in plans},
            "pictures": {plan.id.hex(): hashlib.sha256(replica.picture(plan.id)).hexdigest() for plan in plans},
            "results": {
                plan.id.hex(): sorted(task.result.id.hex() for task in plan.tasks.values() if task.result)
                for plan in plans
            },
            "faulty": sorted(set().union(*(plan.faulty for plan in plans))),
            "tasks": trio.lowlevel.current_statistics().tasks_living,
        }
        return ""

    def state(self) -> dict[str, Any]:
        self.swarm._command(self.look).result(30)
        view = self.swarm.latest
        return self.facts | {
            "complete": view.complete,
            "agents": {agent.peer: agent.role for agent in view.agents if agent.local},
            "faults": [agent.fault for agent in view.agents if agent.fault],
            "sent": self.swarm.summary["sent"],
            "rss_kb": self.process.memory_info().rss // 1024,
            "fds": self.process.num_fds(),
            "threads": self.process.num_threads(),
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
            answer = {"error": str(swarm.error)} if swarm.error else node.state()
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        swarm.stop()


if __name__ == "__main__":
    main()
