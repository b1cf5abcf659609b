"""Vectors for whoever writes another peer: ops as bytes, and what they come to.

`python -m tests.interop.vectors` writes them; with `--random COUNT FILE` other histories, to compare two folds on
more than the repository holds.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from swarmtui.peer.presence import InvalidPresence, open_presence
from swarmtui.plan.envelope import open_op, to_wire
from swarmtui.plan.ops import InvalidOp, Op, OpId
from swarmtui.plan.replica import Replica
from swarmtui.plan.state import Draft, Plan, Task
from tests.interop import lone_ops, tales
from tests.plan.histories import told

FOLDER = Path(__file__).parent / "vectors"
HISTORIES = 3
MOST_OPS = 16
"""In a random history that is kept in the repository."""


def picture(plan: Plan) -> dict[str, Any]:
    """What two peers have to agree on, as JSON: ids in hex, hlcs as text, what is false, empty or none left out."""
    policy = plan.policy
    return _filled(
        operator=plan.operator,
        done=plan.done,
        paused=plan.paused,
        faulty=sorted(plan.faulty),
        policy={name: getattr(policy, name) for name in ("need", "max_depth", "lease_s", "attempts", "synthesis")},
        tasks={task.id.hex(): _task(task) for task in plan.tasks.values()},
    )


def _task(task: Task) -> dict[str, Any]:
    done_at = task.done_at  # type: ignore[attr-defined]  # the replica's own kind of task has it
    return _filled(
        title=task.title,
        state=task.state.value,
        leaf=task.leaf,
        winner=task.winner and task.winner.op.id.hex(),
        chain=[op.id.hex() for op in task.chain],
        holder=task.holder and task.holder.id.hex(),
        failures=task.releases,
        result=task.result and task.result.id.hex(),
        done_at=None if done_at is None else str(done_at),
        notes=[op.id.hex() for op in task.notes],
        drafts={draft.op.id.hex(): _draft(draft) for draft in task.drafts.values()},
    )


def _draft(draft: Draft) -> dict[str, Any]:
    return _filled(
        accepted_at=None if draft.accepted_at is None else str(draft.accepted_at),
        vetoed=draft.vetoed,
        over=not draft.counts,
    )


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def of_ops(name: str, about: str, ops: list[Op]) -> dict[str, Any]:
    """One set of ops and what it comes to."""
    replica = Replica()
    replica.add_many(ops)
    plans = {plan_id.hex(): picture(plan) for plan_id, plan in replica.plans.items()}
    numbers = {op.id: n for n, op in enumerate(ops)}
    return {
        "name": name,
        "about": about,
        "ops": [to_wire(op).hex() for op in ops],
        "held": replica.count,
        "fingerprint": replica.fingerprint.hex(),
        "plans": _short(plans, _names(replica, numbers)),
    }


def _names(replica: Replica, numbers: dict[OpId, int]) -> dict[str, str]:
    """Short names: an op is its place in `ops`, a task its proposal's place and its step's index."""
    names = {op_id.hex(): str(number) for op_id, number in numbers.items()}
    for plan in replica.plans.values():
        for task in plan.tasks.values():
            if task.proposal is not None:
                names[task.id.hex()] = f"{numbers[task.proposal]}/{task.index}"
    return names


def _short(value: Any, names: dict[str, str]) -> Any:
    match value:
        case dict():
            return {names.get(key, key): _short(item, names) for key, item in value.items()}
        case list():
            return [_short(item, names) for item in value]
        case str():
            return names.get(value, value)
    return value


def of_tales() -> list[dict[str, Any]]:
    return [of_ops(tale.__name__, (tale.__doc__ or "").strip(), tale()) for tale in tales.ALL]


def of_histories(count: int = HISTORIES, most: int = MOST_OPS, first: int = 0) -> list[dict[str, Any]]:
    """Random histories, from seeds `first` on, that have at most so many ops."""
    found: list[dict[str, Any]] = []
    seed = first
    while len(found) < count:
        rng = random.Random(seed)
        ops = told(rng.randbytes(rng.randrange(60, 900)))
        if most // 2 < len(ops) <= most:
            rng.shuffle(ops)
            found.append(of_ops(f"history {seed}", "Told at random, half of it to disturb; in any order.", ops))
        seed += 1
    return found


def of_lone_ops() -> dict[str, Any]:
    return {
        "ops": [{"about": about, "wire": wire.hex(), "id": open_op(wire).id.hex()} for about, wire in lone_ops.good()],
        "invalid ops": list(_refused(lone_ops.bad(), open_op, InvalidOp)),
        "presences": [
            {"about": about, "wire": wire.hex(), "peer": open_presence(wire).peer}
            for about, wire in lone_ops.good_presences()
        ],
        "invalid presences": list(_refused(lone_ops.bad_presences(), open_presence, InvalidPresence)),
    }


def _refused(
    cases: Iterable[tuple[str, bytes]], opened: Callable[[bytes], object], kind: type[Exception]
) -> Iterator[dict[str, str]]:
    for about, wire in cases:
        try:
            opened(wire)
        except kind as error:
            yield {"about": about, "wire": wire.hex(), "reason": str(error)}
        else:
            raise AssertionError(f"let in: {about}")


def write(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=0, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--random"]:
        write(Path(arguments[2]), of_histories(int(arguments[1]), most=200, first=1000))
        return
    FOLDER.mkdir(exist_ok=True)
    write(FOLDER / "tales.json", of_tales())
    write(FOLDER / "histories.json", of_histories())
    write(FOLDER / "ops.json", of_lone_ops())


if __name__ == "__main__":
    main(sys.argv[1:])
