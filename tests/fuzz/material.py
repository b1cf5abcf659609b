"""What is good, and gets spoilt: plain trees of every kind of op, presence, frame, request and answer."""

from __future__ import annotations

from typing import Any

from swarmtui.plan.envelope import SIGNED_PREFIX, Identity
from swarmtui.plan.ops import MAX_SEQ

from .dice import Dice
from .mutate import spoil, spoil_bytes
from .pack import Raw, pack

PEOPLE = [Identity.from_seed(bytes([i]) * 32) for i in range(40, 48)]
START_MS = 1_700_000_000_000
START = START_MS << 16
PRESENCE_PREFIX = b"swarmtui/presence/1\0"
TEXTS = ["x", "plan a trip", "é" * 40, "‮rtl", "[/foo]", "a\nb\0c", "🗾🧳", " ", "x" * 200, "x" * 3_999]


def some_id(dice: Dice) -> bytes:
    return bytes((dice.below(4),)) * 32


def bodies(dice: Dice, ids: Any = some_id) -> dict[str, Any]:
    """The body of an op, of any kind, with most fields given; `ids(dice)` says what it refers to."""

    def steps(count: int) -> list[dict[str, Any]]:
        return [
            {
                "title": dice.choose(TEXTS[:7]),
                "detail": dice.choose(TEXTS),
                "atomic": dice.chance(50),
                "needs": "write",
                "after": list(range(i))[: dice.below(3)],
            }
            for i in range(count)
        ]

    text = dice.choose(TEXTS)
    marks = {"specific": dice.below(101), "distinct": 0, "complete": 100}
    match dice.below(13):
        case 0:
            return {
                "kind": "goal",
                "title": dice.choose(TEXTS[:7]),
                "detail": text,
                "policy": policy(dice),
                "nonce": b"n",
            }
        case 1:
            made = {"kind": "proposal", "task": ids(dice), "steps": steps(2 + dice.below(3)), "rationale": text}
            return made | {"angle": "by day", "base": dice.choose([b"", ids(dice)])}
        case 2:
            return {"kind": "vote", "proposal": ids(dice), "approve": dice.chance(70), "marks": marks, "critique": text}
        case 3:
            return {"kind": "claim", "task": ids(dice), "prior": dice.choose([b"", ids(dice)])}
        case 4:
            return {"kind": "release", "claim": ids(dice), "reason": text} | dice.choose([{}, {"failed": False}])
        case 5:
            return {"kind": "result", "claim": ids(dice), "output": text}
        case 6:
            return {"kind": "steer", "act": {"act": "policy", "policy": policy(dice)}}
        case 7:
            return {"kind": "steer", "act": {"act": dice.choose(["pick", "veto"]), "proposal": ids(dice)}}
        case 8:
            return {"kind": "steer", "act": {"act": "retry", "task": ids(dice)}}
        case 9:
            return {"kind": "steer", "act": {"act": "note", "task": ids(dice), "text": text}}
        case 10:
            return {"kind": "steer", "act": {"act": "pause", "on": dice.chance(50)}}
        case 11:
            return {"kind": "steer", "act": {"act": "dance", "with": [1, True, b"x", {"who": text}]}}
    return {"kind": "song", "notes": [1, -5, 1 << 63, {"loud": [[[]]]}], "of": ids(dice)}


def policy(dice: Dice) -> dict[str, Any]:
    return {
        "need": 1 + dice.below(3),
        "of": 3,
        "scorers": [dice.choose(PEOPLE).peer_id] if dice.chance(20) else [],
        "rivals": 2,
        "rounds": 2,
        "fan_out": [2, 6],
        "max_depth": 1 + dice.below(3),
        "pass_mark": 60,
        "patience_s": 120,
        "lease_s": dice.choose([1, 60, 86_400]),
        "attempts": 1 + dice.below(3),
        "settle_ms": 1000,
        "skills": ["write"],
        "synthesis": dice.choose(["none", "root", "all"]),
    }


def head(dice: Dice, who: Identity, body: dict[str, Any], plan: bytes) -> dict[str, Any]:
    goal = body.get("kind") == "goal"
    return {
        "v": 1,
        "plan": b"" if goal else plan,
        "author": who.peer_id,
        "seq": 0 if goal else dice.choose([0, 1, 2, 3, 4, 5, 6, 7, MAX_SEQ]),
        "hlc": dice.choose([START, START + 1, START + (dice.below(10_000) << 16), START + (1 << 40), 0, (1 << 63) - 1]),
        "body": body,
    }


def sealed(dice: Dice, who: Identity, prefix: bytes, payload: bytes) -> Any:
    """Payload and signature, as they travel; mostly the right signature."""
    signature: Any = who.sign(prefix + payload)
    match dice.below(24):
        case 23:
            signature = dice.choose(PEOPLE).sign(prefix + payload)
        case 22:
            signature = dice.choose([b"", bytes(64), signature[:63], signature + b"x", signature.hex(), None, 7])
        case 21:
            signature = spoil_bytes(dice, signature)
    return [payload, signature]


def op_wire(dice: Dice, ids: Any = some_id, plan: bytes = b"\1" * 32) -> bytes:
    """An op as it travels: good, spoilt before it was signed, or spoilt afterwards."""
    if dice.chance(4):
        return dice.octets(dice.below(300))
    who = dice.choose(PEOPLE)
    tree: Any = head(dice, who, bodies(dice, ids), plan)
    for _ in range(dice.choose([0, 1, 1, 1, 2, 3])):
        tree = spoil(dice, tree)
    payload = pack(tree, dice)
    if dice.chance(15):
        payload = spoil_bytes(dice, payload)
    wire = pack(sealed(dice, who, SIGNED_PREFIX, payload), dice)
    return spoil_bytes(dice, wire) if dice.chance(15) else wire


def presence_tree(dice: Dice, who: Identity) -> dict[str, Any]:
    return {
        "peer": who.peer_id,
        "at": START_MS + dice.below(100_000),
        "run": 1 + dice.below(4),
        "count": dice.below(50),
        "every_ms": dice.choose([10_000, 1_000, 300_000]),
        "role": dice.choose(["scorer", "executor", "observer", "x"]),
        "name": dice.choose(TEXTS[:7]),
        "skills": ["write"],
        "model": "m",
        "machine": "here",
        "doing": dice.choose(TEXTS[:7]),
        "subject": dice.choose(TEXTS[:7]),
        "since": START_MS,
        "tokens_per_second_x10": 5,
        "ops": dice.below(9),
        "said": 1,
        "fingerprint": b"f" * 16,
        "leaving": dice.chance(10),
    }


def presence_wire(dice: Dice) -> bytes:
    who = dice.choose(PEOPLE)
    tree: Any = presence_tree(dice, who)
    for _ in range(dice.choose([0, 1, 1, 2])):
        tree = spoil(dice, tree)
    payload = pack(tree, dice)
    if dice.chance(15):
        payload = spoil_bytes(dice, payload)
    wire = pack(sealed(dice, who, PRESENCE_PREFIX, payload), dice)
    return spoil_bytes(dice, wire) if dice.chance(10) else wire


def frame(dice: Dice, ids: Any = some_id, plan: bytes = b"\1" * 32) -> bytes:
    """A frame of ops, a presence, or both."""
    if dice.chance(4):
        return dice.octets(dice.below(400))
    tree: Any = {}
    if dice.chance(75):
        tree["ops"] = [Raw(op_wire(dice, ids, plan)) for _ in range(dice.choose([1, 1, 1, 2, 5]))]
    if not tree or dice.chance(30):
        tree["presence"] = Raw(presence_wire(dice))
    if dice.chance(30):
        tree = spoil(dice, tree)
    data = pack(tree, dice)
    return spoil_bytes(dice, data) if dice.chance(15) else data


def vector(dice: Dice, plan: bytes) -> dict[Any, Any]:
    authors = {dice.choose(PEOPLE).peer_id: dice.choose([0, 1, 5, 1 << 20]) for _ in range(dice.below(4))}
    return {dice.choose([plan, b"\2" * 32]): authors for _ in range(dice.below(3))}


def by_author(dice: Dice, plan: bytes, size: int) -> dict[Any, Any]:
    authors = {dice.choose(PEOPLE).peer_id: dice.octets(size * dice.below(3)) for _ in range(dice.below(4))}
    return {dice.choose([plan, b"\2" * 32]): authors for _ in range(dice.below(3))}


def request(dice: Dice, ids: Any = some_id, plan: bytes = b"\1" * 32) -> bytes:
    """A repair request."""
    if dice.chance(4):
        return dice.octets(dice.below(400))
    tree: Any = {"do": dice.choose(["swap", "push", "compare", "fetch"])}
    match tree["do"]:
        case "swap":
            tree["vector"] = vector(dice, plan)
        case "push":
            tree["ops"] = [Raw(op_wire(dice, ids, plan)) for _ in range(dice.below(4))]
        case "compare":
            tree["hashes"] = by_author(dice, plan, 16)
        case "fetch":
            tree["ids"] = b"".join(ids(dice) for _ in range(dice.below(5))) + dice.octets(dice.choose([0, 0, 32, 31]))
    for _ in range(dice.choose([0, 1, 1, 2])):
        tree = spoil(dice, tree)
    data = pack(tree, dice)
    return spoil_bytes(dice, data) if dice.chance(15) else data


def answer(dice: Dice, ids: Any = some_id, plan: bytes = b"\1" * 32) -> bytes:
    """An answer to any repair request."""
    if dice.chance(4):
        return dice.octets(dice.below(400))
    tree: Any = {
        "ops": [Raw(op_wire(dice, ids, plan)) for _ in range(dice.below(4))],
        "vector": vector(dice, plan),
        "ids": by_author(dice, plan, 32),
        "kept": dice.below(3),
        "fingerprint": dice.octets(16),
    }
    for _ in range(dice.choose([0, 0, 1, 2])):
        tree = spoil(dice, tree)
    data = pack(tree, dice)
    return spoil_bytes(dice, data) if dice.chance(10) else data
