"""Small scenarios written by hand, and the oracle that judges them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from swarmtui.plan.ops import Op, OpId, Policy
from swarmtui.sim.judgement import Outcome
from swarmtui.sim.run import run
from swarmtui.sim.scenario import Fault, Member, Scenario
from tests.plan import naive

CREW = ("operator", "decomposer", "scorer", "scorer", "executor", "executor", "observer")
OPERATOR, DECOMPOSER, SCORER, SCORER_2, EXECUTOR, EXECUTOR_2, OBSERVER = range(7)
POLICY = Policy(
    need=2,
    of=2,
    rivals=2,
    rounds=1,
    fan_out=(2, 3),
    max_depth=2,
    patience_s=30,
    lease_s=20,
    settle_ms=500,
    synthesis="root",
)
HEAL_S = 70.0


def oracle(ops: list[Op]) -> dict[OpId, bytes]:
    """The naive fold's pictures."""
    return naive.pictures(ops)


def scene(
    *faults: Fault,
    seed: int = 1,
    crew: Sequence[str] = CREW,
    members: dict[int, dict[str, Any]] | None = None,
    policy: dict[str, Any] | None = None,
    **settings: Any,
) -> Scenario:
    """A swarm of `CREW`, with these faults.

    Args:
        members: what's special about a member, by its place.
        policy: what's special about the policy.
    """
    special = members or {}
    defaults: dict[str, Any] = {"heal_s": HEAL_S, "tokens_per_second": 8.0}
    return Scenario(
        seed=seed,
        members=tuple(
            Member(**{"role": role, "joins_s": round(0.05 * number, 2)} | special.get(number, {}))
            for number, role in enumerate(crew)
        ),
        policy=msgspec.structs.replace(POLICY, **(policy or {})),
        faults=faults,
        **defaults | settings,
    )


def played(scenario: Scenario) -> Outcome:
    """Run it; nothing that has to hold may be violated."""
    outcome = run(scenario, oracle=oracle)
    assert not outcome.violations, "\n".join(f"{v.rule}: {v.what}" for v in outcome.violations)
    return outcome
