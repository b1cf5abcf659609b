"""Records what a six-agent swarm asks of its model, for tests/benchmarks/engine.py.

    python -m tests.benchmarks.engine_record small|full

Two decomposers, two scorers and two executors (preset `laptop`) make plans with the bundled model. `small`: with the
short prompts that small models get; `full`: with those that others get. The scorers are made to write marks instead of
weighing, since that is what the engine's rivals can be asked as well. Writes tests/benchmarks/engine_small.json or
engine_full.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from swarmtui.agents import prompting
from swarmtui.config import load
from swarmtui.llm.client import EngineModel
from swarmtui.llm.model import Likelihood, ModelError, Reply, Request
from swarmtui.swarm import Swarm

GOALS = ["Plan a two-week trip to Japan", "Open a small bakery", "Organise a street festival"]
MOST = 72
DEADLINE_S = 900.0


def record(goals: list[str], full: bool, most: int = MOST) -> list[dict[str, Any]]:
    """The requests in the order in which they were asked."""
    found: list[dict[str, Any]] = []
    original = EngineModel.generate

    async def generate(self: EngineModel, request: Request, on_text: Any = None) -> Reply:
        if len(found) < most:
            found.append(msgspec.to_builtins(msgspec.structs.replace(request, facts={})))
        return await original(self, request, on_text)

    async def likelihood(self: EngineModel, request: Likelihood) -> list[float]:
        raise ModelError("not in this benchmark")

    if full:
        prompting.SMALL_BILLIONS = 0.0
    EngineModel.generate, EngineModel.likelihood = generate, likelihood  # type: ignore[method-assign]
    for goal in goals:
        if len(found) >= most:
            break
        with tempfile.TemporaryDirectory() as folder:
            own = {"data_dir": folder, "swarm.mdns": False, "swarm.name": "record", "agents.scorers": 2}
            swarm = Swarm(load(own, {}, None, "laptop"), resume=False)
            swarm.start()
            try:
                swarm.give_goal(goal).result(30)
                end = time.monotonic() + DEADLINE_S
                while len(found) < most and time.monotonic() < end:
                    plan = swarm.latest.plan
                    if plan is not None and plan.done:
                        break
                    time.sleep(0.2)
            finally:
                swarm.stop()
        print(f"{goal}: {len(found)} requests")
    return found


if __name__ == "__main__":
    kind = sys.argv[1]
    file = Path(__file__).with_name(f"engine_{kind}.json")
    file.write_text(json.dumps(record(GOALS, kind == "full"), indent=1, ensure_ascii=False) + "\n", "utf-8")
