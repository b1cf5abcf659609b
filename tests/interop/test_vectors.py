"""Our replica gives what the vectors say, and the vectors are what the script writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swarmtui.peer.presence import InvalidPresence, open_presence
from swarmtui.plan.envelope import open_op, task_id
from swarmtui.plan.ops import InvalidOp
from swarmtui.plan.replica import Replica

from .vectors import FOLDER, of_lone_ops, of_tales, picture

MOST_BYTES = 500_000


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def written_out(value: Any, ids: list[bytes]) -> Any:
    """The ids for which a place in the list of ops stands, or such a place and a step's index."""
    if isinstance(value, dict):
        return {written_out(key, ids): written_out(item, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [written_out(item, ids) for item in value]
    if isinstance(value, str) and value.replace("/", "").isdecimal() and len(value) < 8:
        place, _, step = value.partition("/")
        return (task_id(ids[int(place)], int(step)) if step else ids[int(place)]).hex()
    return value


SETS = {entry["name"]: entry for entry in read("tales.json") + read("histories.json")}


@pytest.mark.parametrize("name", SETS)
def test_a_set_comes_to_the_tree(name: str) -> None:
    entry = SETS[name]
    ops = [open_op(bytes.fromhex(wire)) for wire in entry["ops"]]
    for order in (ops, ops[::-1]):
        replica = Replica()
        for op in order:
            replica.add(op)
        assert (replica.count, replica.fingerprint.hex()) == (entry["held"], entry["fingerprint"])
        assert {plan_id.hex(): picture(plan) for plan_id, plan in replica.plans.items()} == written_out(
            entry["plans"], [op.id for op in ops]
        )


def test_lone_ops_and_presences() -> None:
    given = read("ops.json")
    for entry in given["ops"]:
        assert open_op(bytes.fromhex(entry["wire"])).id.hex() == entry["id"], entry["about"]
    for entry in given["presences"]:
        assert open_presence(bytes.fromhex(entry["wire"])).peer == entry["peer"], entry["about"]
    for entry in given["invalid ops"]:
        with pytest.raises(InvalidOp):
            open_op(bytes.fromhex(entry["wire"]))
    for entry in given["invalid presences"]:
        with pytest.raises(InvalidPresence):
            open_presence(bytes.fromhex(entry["wire"]))


def test_the_vectors_are_what_the_script_writes() -> None:
    assert read("tales.json") == of_tales()
    assert read("ops.json") == of_lone_ops()


def test_they_are_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < MOST_BYTES
