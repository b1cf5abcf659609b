"""Single ops and presences: what is let in, and what is refused, with the reason."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
from nacl import bindings

from swarmtui.peer import presence
from swarmtui.plan.envelope import SIGNED_PREFIX, Identity, peer_id
from tests.plan.tale import ADA, BOB

PLAN, ID = b"p" * 32, b"i" * 32
CLAIM = {"kind": "claim", "task": ID}
MARKS = {"specific": 0, "distinct": 50, "complete": 100}
ORDER = 2**252 + 27742317777372353535851937790883648493
"""Of Ed25519's main group."""
SMALL = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
"""A point of order 8."""


def wrap(payload: bytes, who: Identity = ADA, prefix: bytes = SIGNED_PREFIX) -> bytes:
    return msgspec.msgpack.encode((payload, who.sign(prefix + payload)))


def pack(said: Any, **header: Any) -> bytes:
    fields = {"v": 1, "plan": PLAN, "author": ADA.peer_id, "seq": 0, "hlc": 5, "body": said} | header
    return msgspec.msgpack.encode({key: value for key, value in fields.items() if value is not ...})


def signed(said: Any, **header: Any) -> bytes:
    return wrap(pack(said, **header))


def raw(value: bytes) -> bytes:
    """An op of an unknown kind with these bytes as a field."""
    return signed(msgspec.Raw(b"\x82\xa4kind\xa4song\xa1x" + value))


def goal(**fields: Any) -> bytes:
    return signed({"kind": "goal", "title": "Trip"} | fields, plan=b"")


def draft(*steps: dict[str, Any], **fields: Any) -> bytes:
    return signed({"kind": "proposal", "task": ID, "steps": steps or ({"title": "a"}, {"title": "b"})} | fields)


def policy(**fields: Any) -> bytes:
    return signed({"kind": "steer", "act": {"act": "policy", "policy": fields}})


def good() -> Iterator[tuple[str, bytes]]:
    """Ops that are let in."""
    yield "a goal", goal()
    yield "a goal with fields that hold their defaults", goal(detail="", nonce=b"", policy={"need": 2, "of": 3})
    yield "200 characters beyond the first plane, 400 units of UTF-16", goal(title="🗾" * 200)
    yield "a title that begins with U+FEFF, and one that is nothing else isn't blank", goal(title="\ufeff")
    yield "a title with a combining accent at the limit", goal(title="e\u0301" * 100)
    yield "a claim", signed(CLAIM)
    yield "a claim with the fields in another order", signed({"task": ID, "kind": "claim", "prior": b""})
    yield "a vote", signed({"kind": "vote", "proposal": ID, "approve": False, "marks": MARKS, "critique": "vague"})
    yield "a release", signed({"kind": "release", "claim": ID})
    yield "a release that is no failure", signed({"kind": "release", "claim": ID, "failed": False})
    yield "a result", signed({"kind": "result", "claim": ID, "output": " "})
    yield "a draft", draft({"title": "a"}, {"title": "b", "after": [0, 0]}, base=ID, angle="by day")
    yield "a policy", policy(scorers=["x", ""], skills=[], fan_out=[2, 16])
    for act in ({"act": "pick", "proposal": ID}, {"act": "retry", "task": ID}, {"act": "pause", "on": True}):
        yield f"a {act['act']}", signed({"kind": "steer", "act": act})
    yield "the greatest numbers", signed(CLAIM, seq=65_535, hlc=2**63 - 1)
    yield "an integer in its longest form", signed(CLAIM, seq=msgspec.Raw(b"\xcf" + bytes(7) + b"\x07"))
    yield "an unknown kind", signed({"kind": "song", "notes": [1, True, b"x", {"loud": ["x", -5, 2**64 - 1]}]})
    yield "a kind that is empty", signed({"kind": ""})
    yield "an unknown act", signed({"kind": "steer", "act": {"act": "dance", "on": 3}})
    yield "unknown fields", signed(CLAIM | {"mood": ["fine"]}, later={"a": -(2**63)})
    yield "16 levels", raw(b"\x91" * 13 + b"\x90")
    yield "4,096 values", raw(b"\xdc" + (4_087).to_bytes(2, "big") + b"\x01" * 4_087)
    payload = pack(CLAIM)
    loose = b"\xdd\0\0\0\2\xc6\0\0" + len(payload).to_bytes(2, "big") + payload
    yield "a loose wrapping", loose + b"\xc6\0\0\0\x40" + ADA.sign(SIGNED_PREFIX + payload)


def bad() -> Iterator[tuple[str, bytes]]:
    """Ops that are refused."""
    yield from _bad_bytes()
    yield from _bad_signatures()
    yield from _bad_headers()
    yield from _bad_bodies()


def _bad_bytes() -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "not a list of two", msgspec.msgpack.encode([b"x"])
    yield "text instead of bytes", msgspec.msgpack.encode(["x", b"y"])
    yield "bytes behind the op", signed(CLAIM) + b"\x01"
    yield "bytes behind the payload", wrap(pack(CLAIM) + b"\x01")
    yield "nil", raw(b"\xc0")
    yield "a float", raw(b"\xca\0\0\0\0")
    yield "an extension", raw(b"\xd4\x01x")
    yield "a byte that is never used", raw(b"\xc1")
    yield "text that isn't UTF-8", raw(b"\xa2\xff\xfe")
    yield "half of a surrogate pair", raw(b"\xa3\xed\xa0\x80")
    yield "a number as key", raw(b"\x81\x01\x01")
    yield "a key twice", raw(b"\x82\xa1a\x01\xa1a\x01")
    yield "a key twice, in two forms", raw(b"\x82\xa1a\x01\xd9\x01a\x01")
    yield "a known key twice", signed(msgspec.Raw(b"\x83\xa4kind\xa5claim\xa4task\xc4\x20" + ID + b"\xa4kind\xa5claim"))
    yield "17 levels", raw(b"\x91" * 14 + b"\x90")
    yield "4,097 values", raw(b"\xdc" + (4_088).to_bytes(2, "big") + b"\x01" * 4_088)
    yield "a list that promises a lot", raw(b"\xdd\xff\xff\xff\xff")
    yield "an unknown field of a known kind that holds nil", signed(CLAIM | {"mood": None})
    yield "an unknown field beside the body that holds a float", signed(CLAIM, more=1.5)


def _bad_signatures() -> Iterator[tuple[str, bytes]]:
    payload = pack(CLAIM)
    yield "no signature", msgspec.msgpack.encode((payload, b""))
    yield "another's signature", wrap(payload, BOB)
    yield "signed without the prefix", wrap(payload, prefix=b"")
    yield "signed as a presence", wrap(payload, prefix=presence.PREFIX)
    signature = ADA.sign(SIGNED_PREFIX + payload)
    scalar = int.from_bytes(signature[32:], "little") + ORDER
    yield (
        "the signature's scalar plus the group's order",
        _pair(payload, signature[:32] + scalar.to_bytes(32, "little")),
    )
    yield "a key of order 1, for which anyone can sign", _small_key()
    yield "a key of order 1 in another form", _small_key((2**255 - 18).to_bytes(32, "little"))
    yield "a commitment of order 1", _small_commitment()
    yield "fits the equation only when multiplied by 8", _mixed(torsion=True)


def _pair(payload: bytes, signature: bytes) -> bytes:
    return msgspec.msgpack.encode((payload, signature))


def _base(scalar: int) -> bytes:
    return bindings.crypto_scalarmult_ed25519_base_noclamp(_bytes(scalar))


def _bytes(scalar: int) -> bytes:
    return (scalar % ORDER).to_bytes(32, "little")


def _challenge(commitment: bytes, key: bytes, payload: bytes) -> int:
    return int.from_bytes(hashlib.sha512(commitment + key + SIGNED_PREFIX + payload).digest(), "little")


def _small_key(key: bytes = (1).to_bytes(32, "little")) -> bytes:
    return _pair(pack(CLAIM, author=peer_id(key)), _base(12345) + _bytes(12345))


def _small_commitment() -> bytes:
    secret = 777
    payload, commitment = pack(CLAIM, author=peer_id(_base(secret))), (1).to_bytes(32, "little")
    challenge = _challenge(commitment, _base(secret), payload)
    return _pair(payload, commitment + _bytes(challenge * secret))


def _mixed(torsion: bool) -> bytes:
    """Signed by a key that has a part of order 8; `torsion`: which the signature leaves over."""
    secret = 777
    key = bindings.crypto_core_ed25519_add(_base(secret), SMALL)
    payload = pack(CLAIM, author=peer_id(key))
    for nonce in range(1, 1000):
        challenge = _challenge(_base(nonce), key, payload)
        if (challenge % 8 != 0) == torsion:
            return _pair(payload, _base(nonce) + _bytes(nonce + challenge * secret))
    raise AssertionError("no nonce fits")


def _bad_headers() -> Iterator[tuple[str, bytes]]:
    headers: list[tuple[str, dict[str, Any]]] = [
        ("version 2", {"v": 2}),
        ("a boolean as version", {"v": True}),
        ("no version", {"v": ...}),
        ("no plan", {"plan": b""}),
        ("a short plan", {"plan": b"short"}),
        ("text as plan", {"plan": "p" * 32}),
        ("a negative seq", {"seq": -1}),
        ("a seq beyond the limit", {"seq": 65_536}),
        ("a negative hlc", {"hlc": -1}),
        ("an hlc beyond the limit", {"hlc": 2**63}),
        ("a blank behind the author", {"author": ADA.peer_id + " "}),
        ("a 1 in front of the author", {"author": "1" + ADA.peer_id}),
        ("an author whose key isn't Ed25519", {"author": "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"}),
        ("no body", {"body": ...}),
    ]
    for about, header in headers:
        yield about, signed(CLAIM, **header)


def _bad_bodies() -> Iterator[tuple[str, bytes]]:
    a, b = {"title": "a"}, {"title": "b"}
    bodies: list[tuple[str, Any]] = [
        ("a body that isn't a map", []),
        ("no kind", {}),
        ("a number as kind", {"kind": 7}),
        ("a steer without act", {"kind": "steer"}),
        ("an act without name", {"kind": "steer", "act": {}}),
        ("a goal in another plan", {"kind": "goal", "title": "x"}),
        ("a claim of nothing", {"kind": "claim"}),
        ("text as id", {"kind": "claim", "task": "t" * 32}),
        ("a prior of 5 bytes", CLAIM | {"prior": b"short"}),
        ("a release that failed by a number", {"kind": "release", "claim": ID, "failed": 0}),
        ("a number as boolean", {"kind": "vote", "proposal": ID, "approve": 1, "marks": MARKS}),
        ("a mark of 101", {"kind": "vote", "proposal": ID, "approve": True, "marks": MARKS | {"distinct": 101}}),
        ("no mark", {"kind": "vote", "proposal": ID, "approve": True, "marks": {}}),
        (
            "a critique that isn't text",
            {"kind": "vote", "proposal": ID, "approve": True, "marks": MARKS, "critique": 1},
        ),
        ("no output", {"kind": "result", "claim": ID, "output": ""}),
        ("an empty note", {"kind": "steer", "act": {"act": "note", "task": ID, "text": ""}}),
        ("pause: 1", {"kind": "steer", "act": {"act": "pause", "on": 1}}),
    ]
    for about, body in bodies:
        yield about, signed(body)
    yield "one step", draft(a)
    yield "17 steps", draft(*[a] * 17)
    yield "a step that waits for itself", draft(a, b | {"after": [1]})
    yield "a step that waits for -1", draft(a, b | {"after": [-1]})
    yield "a blank step", draft(a, {"title": " \u3000\x1f"})
    yield "a skill without a name", draft(a, b | {"needs": ""})
    yield "a title of 201", draft(a, {"title": "🗾" * 201})
    yield "a goal with seq 1", signed({"kind": "goal", "title": "Trip"}, plan=b"", seq=1)
    yield "a blank goal", goal(title="\u00a0\n")
    yield "a nonce of 33", goal(nonce=bytes(33))
    yield "a quorum of 4 of 3", policy(need=4, of=3)
    yield "a fan-out of 5-4", policy(fan_out=[5, 4])
    yield "a fan-out of one number", policy(fan_out=[5])
    yield "max_depth 9", policy(max_depth=9)
    yield "an unknown synthesis", policy(synthesis="some")
    yield "a line break behind a word", policy(synthesis="root\n")


HERE = {"peer": ADA.peer_id, "at": 1_700_000_000_000, "run": 7, "count": 1}


def present(**fields: Any) -> bytes:
    said = {key: value for key, value in (HERE | fields).items() if value is not ...}
    return wrap(msgspec.msgpack.encode(said), prefix=presence.PREFIX)


def good_presences() -> Iterator[tuple[str, bytes]]:
    yield "the least", present()
    yield "all", present(
        every_ms=1000, role="scorer", name="ada", skills=["write"], model="m", machine="here", doing="judging",
        subject="🗾" * 200, since=5, tokens_per_second_x10=123, ops=9, said=3, fingerprint=bytes(16), leaving=True,
    )  # fmt: skip
    yield "an unknown field", present(mood="fine")


def bad_presences() -> Iterator[tuple[str, bytes]]:
    yield "signed as an op", wrap(msgspec.msgpack.encode(HERE))
    yield "another's", wrap(msgspec.msgpack.encode(HERE), BOB, presence.PREFIX)
    yield "no run", present(run=...)
    yield "every 999 ms", present(every_ms=999)
    yield "a count of 2^53", present(count=2**53)
    yield "nil in an unknown field", present(mood=None)
    yield "a field twice", wrap(b"\x85" + msgspec.msgpack.encode(HERE)[1:] + b"\xa3run\x07", prefix=presence.PREFIX)
    yield "a name of 81", present(name="🗾" * 81)
