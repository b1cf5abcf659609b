"""What the operator of a simulated swarm decides: at random while things go wrong, later to help plans along."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import msgspec

from swarmtui.plan.ops import AnyAct, Note, Pause, Pick, Retry, SetPolicy, Veto
from swarmtui.plan.state import Plan, State

if TYPE_CHECKING:
    from .member import Member
    from .world import World


def operators(world: World) -> list[Member]:
    """Those who can decide now."""
    return [member for member in world.honest() if member.operator is not None and member.working]


def steer(world: World, act: str) -> None:
    """Make a decision of this kind on some plan, if there's anything to decide."""
    for member in operators(world):
        for plan in member.peer.replica.plans.values():
            decided = choose(plan, act, world.rng) if plan.operator == member.identity.peer_id else None
            if decided is not None:
                member.decide(plan.id, decided)
                return


def choose(plan: Plan, act: str, rng: random.Random) -> AnyAct | None:
    """A decision of this kind; None if there's nothing to decide."""
    tasks = [task for task in plan.tasks.values() if task.live]
    drafts = [draft for task in tasks for draft in task.drafts.values()]
    decided: AnyAct | None = None
    match act:
        case "pause":
            decided = Pause(on=True)
        case "note":
            decided = Note(rng.choice(tasks).id, "Make it cheap.")
        case "retry":
            decided = Retry(rng.choice(tasks).id)
        case "pick" if drafts:
            decided = Pick(rng.choice(drafts).op.id)
        case "veto" if drafts:
            decided = Veto(rng.choice(drafts).op.id)
        case "policy":
            need = rng.randint(1, plan.policy.need)
            changed = msgspec.structs.replace(plan.policy, need=need, synthesis=rng.choice(("none", "root", "all")))
            decided = SetPolicy(changed)
    return decided


def help_along(world: World) -> None:
    """Do what a person would do about a plan that waits for the person: end a pause, open again what has failed."""
    for member in operators(world):
        for plan in list(member.peer.replica.plans.values()):
            if plan.operator != member.identity.peer_id:
                continue
            if plan.paused:
                member.decide(plan.id, Pause(on=False))
            for task in list(plan.tasks.values()):
                if task.live and task.state is State.FAILED:
                    member.decide(plan.id, Retry(task.id))
