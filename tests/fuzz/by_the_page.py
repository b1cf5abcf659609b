"""A second reader of ops, written from docs/protocol.md section 2 alone: what is an op, and what is none.

Slow and plain on purpose. It shares no code with swarmtui.plan; ops that one of the two takes and the other refuses
are found by the fuzzer.
"""

from __future__ import annotations

import re
from typing import Any

import base58
from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey


class Wrong(Exception):
    """It isn't an op; `str()` says what the page says about it."""


def need(condition: object, what: str) -> None:
    if not condition:
        raise Wrong(what)


class Reader:
    """Reads one MessagePack value and keeps to what an op may be made of."""

    def __init__(self, data: bytes, strict: bool) -> None:
        self.data, self.at, self.values, self.strict = data, 0, 0, strict

    def take(self, count: int) -> bytes:
        need(self.at + count <= len(self.data), "ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "big", signed=signed)

    def value(self, depth: int = 0) -> Any:
        self.values += 1
        need(self.values <= 4_096 or not self.strict, "too many values")
        first = self.number(1)
        if first < 0x80:
            return first
        if first < 0x90:
            return self.map(first & 15, depth)
        if first < 0xA0:
            return self.list(first & 15, depth)
        if first < 0xC0:
            return self.text(first & 31)
        if first >= 0xE0:
            return first - 256
        match first:
            case 0xC2 | 0xC3:
                return first == 0xC3
            case 0xC4 | 0xC5 | 0xC6:
                return self.take(self.number(1 << (first - 0xC4)))
            case 0xCC | 0xCD | 0xCE | 0xCF:
                return self.number(1 << (first - 0xCC))
            case 0xD0 | 0xD1 | 0xD2 | 0xD3:
                return self.number(1 << (first - 0xD0), signed=True)
            case 0xD9 | 0xDA | 0xDB:
                return self.text(self.number(1 << (first - 0xD9)))
            case 0xDC | 0xDD:
                return self.list(self.number(2 if first == 0xDC else 4), depth)
            case 0xDE | 0xDF:
                return self.map(self.number(2 if first == 0xDE else 4), depth)
        raise Wrong("floats, nil and extensions")

    def text(self, length: int) -> str:
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise Wrong("not UTF-8") from None

    def list(self, length: int, depth: int) -> list[Any]:
        need(depth < 16, "nested too deep")
        return [self.value(depth + 1) for _ in range(length)]

    def map(self, length: int, depth: int) -> dict[str, Any]:
        need(depth < 16, "nested too deep")
        found: dict[str, Any] = {}
        for _ in range(length):
            need(self.at < len(self.data), "ends too early")
            first = self.data[self.at]
            need(0xA0 <= first <= 0xBF or 0xD9 <= first <= 0xDB, "a key that isn't text")
            self.values -= 1
            key = self.value(depth + 1)
            need(key not in found, "a key twice")
            found[key] = self.value(depth + 1)
        return found


def whole(data: bytes, strict: bool = True) -> Any:
    reader = Reader(data, strict)
    value = reader.value()
    need(reader.at == len(data), "bytes behind")
    return value


def text(value: Any, most: int, least: int = 0) -> None:
    need(isinstance(value, str) and least <= len(value) <= most, f"text of {least} to {most}")


def number(value: Any, least: int, most: int) -> None:
    need(isinstance(value, int) and not isinstance(value, bool) and least <= value <= most, f"{least} to {most}")


def op_id(value: Any, empty: bool = False) -> None:
    need(isinstance(value, bytes) and (len(value) == 32 or (empty and not value)), "an id")


def title(value: Any) -> None:
    text(value, 200, 1)
    need(value.strip(), "a blank title")


def listed(value: Any, most: int, least: int = 0) -> list[Any]:
    need(isinstance(value, list) and least <= len(value) <= most, f"a list of {least} to {most}")
    return list(value)


def mapped(value: Any) -> dict[str, Any]:
    need(isinstance(value, dict), "a map")
    return dict(value)


def field(body: dict[str, Any], name: str) -> Any:
    need(name in body, f"{name} is missing")
    return body[name]


def policy(value: Any) -> None:
    p = mapped(value)
    for name, default, least, most in (
        ("need", 2, 1, 1000),
        ("of", 3, 1, 1000),
        ("rivals", 2, 1, 8),
        ("rounds", 2, 0, 8),
        ("max_depth", 3, 1, 8),
        ("pass_mark", 60, 0, 100),
        ("patience_s", 120, 1, 86_400),
        ("lease_s", 60, 1, 86_400),
        ("attempts", 3, 1, 100),
        ("settle_ms", 1000, 0, 60_000),
    ):
        number(p.get(name, default), least, most)
    need(p.get("need", 2) <= p.get("of", 3), "need over of")
    for scorer in listed(p.get("scorers", []), 1000):
        need(isinstance(scorer, str), "a scorer")
    fan_out = listed(p.get("fan_out", [2, 6]), 2, 2)
    for end in fan_out:
        number(end, 2, 16)
    need(fan_out[0] <= fan_out[1], "fan_out")
    for skill in listed(p.get("skills", ["write"]), 32):
        text(skill, 40, 1)
    need(p.get("synthesis", "root") in ("none", "root", "all"), "synthesis")


def step(value: Any, index: int) -> None:
    s = mapped(value)
    title(field(s, "title"))
    text(s.get("detail", ""), 4_000)
    need(isinstance(s.get("atomic", False), bool), "atomic")
    text(s.get("needs", "write"), 40, 1)
    for before in listed(s.get("after", []), 16):
        number(before, 0, index - 1)


def act(value: Any) -> None:
    a = mapped(value)
    match field(a, "act"):
        case "policy":
            policy(field(a, "policy"))
        case "pick" | "veto":
            op_id(field(a, "proposal"))
        case "retry":
            op_id(field(a, "task"))
        case "note":
            op_id(field(a, "task"))
            text(field(a, "text"), 4_000, 1)
        case "pause":
            need(isinstance(field(a, "on"), bool), "on")
        case other:
            need(isinstance(other, str), "an act's name")


def body(value: Any) -> None:
    b = mapped(value)
    match field(b, "kind"):
        case "goal":
            title(field(b, "title"))
            text(b.get("detail", ""), 4_000)
            policy(b.get("policy", {}))
            nonce = b.get("nonce", b"")
            need(isinstance(nonce, bytes) and len(nonce) <= 32, "nonce")
        case "proposal":
            op_id(field(b, "task"))
            for index, each in enumerate(listed(field(b, "steps"), 16, 2)):
                step(each, index)
            text(b.get("rationale", ""), 4_000)
            text(b.get("angle", ""), 200)
            op_id(b.get("base", b""), empty=True)
        case "vote":
            op_id(field(b, "proposal"))
            need(isinstance(field(b, "approve"), bool), "approve")
            marks = mapped(field(b, "marks"))
            for name in ("specific", "distinct", "complete"):
                number(field(marks, name), 0, 100)
            text(b.get("critique", ""), 4_000)
        case "claim":
            op_id(field(b, "task"))
            op_id(b.get("prior", b""), empty=True)
        case "release":
            op_id(field(b, "claim"))
            text(b.get("reason", ""), 4_000)
            need(isinstance(b.get("failed", True), bool), "failed")
        case "result":
            op_id(field(b, "claim"))
            text(field(b, "output"), 32_000, 1)
        case "steer":
            act(field(b, "act"))
        case other:
            need(isinstance(other, str), "a kind's name")


def key_of(author: Any) -> VerifyKey:
    need(isinstance(author, str) and re.fullmatch(r"[1-9A-HJ-NP-Za-km-z]{1,128}", author), "an author")
    raw = base58.b58decode(author)
    need(len(raw) == 38 and raw[:6] == bytes.fromhex("002408011220"), "an Ed25519 peer id")
    need(base58.b58encode(raw).decode() == author, "canonical")
    return VerifyKey(raw[6:])


def check(wire: bytes) -> None:
    """Say whether the page calls this an op.

    Raises:
        Wrong: it doesn't.
        RecursionError: it's nested so deeply that this reader gives up: it isn't one either.
    """
    need(len(wire) <= 65_536, "too large")
    travelling = listed(whole(wire, strict=False), 2, 2)
    need(all(isinstance(part, bytes) for part in travelling), "byte strings")
    payload, signature = travelling
    need(len(payload) <= 65_456, "payload too large")
    head = mapped(whole(payload))
    author = field(head, "author")
    try:
        key_of(author).verify(b"swarmtui/op/1\0" + payload, signature)
    except (CryptoError, ValueError):
        raise Wrong("signature") from None
    need(field(head, "v") == 1 and not isinstance(head["v"], bool), "version")
    number(field(head, "seq"), 0, 65_535)
    number(field(head, "hlc"), 0, (1 << 63) - 1)
    body(field(head, "body"))
    plan = field(head, "plan")
    if head["body"]["kind"] == "goal":
        need(plan == b"" and head["seq"] == 0, "a goal's plan and seq")
    else:
        op_id(plan)


def small(value: Any, least: int = 0, most: int = (1 << 53) - 1) -> None:
    number(value, least, most)


def check_presence(wire: bytes) -> None:
    """Say whether the page calls this a presence.

    Raises:
        Wrong, RecursionError: it doesn't.
    """
    need(len(wire) <= 4_096, "too large")
    travelling = listed(whole(wire, strict=False), 2, 2)
    need(all(isinstance(part, bytes) for part in travelling), "byte strings")
    payload, signature = travelling
    said = mapped(whole(payload))
    try:
        key_of(field(said, "peer")).verify(b"swarmtui/presence/1\0" + payload, signature)
    except (CryptoError, ValueError):
        raise Wrong("signature") from None
    for name in ("at", "run", "count"):
        small(field(said, name))
    small(said.get("every_ms", 10_000), 1_000, 300_000)
    for name in ("since", "tokens_per_second_x10", "ops", "said"):
        small(said.get(name, 0))
    for name, most in (("role", 40), ("name", 80), ("model", 200), ("machine", 200), ("doing", 80), ("subject", 200)):
        text(said.get(name, ""), most)
    for skill in listed(said.get("skills", []), 32):
        text(skill, 40)
    fingerprint = said.get("fingerprint", b"")
    need(isinstance(fingerprint, bytes) and len(fingerprint) <= 32, "fingerprint")
    need(isinstance(said.get("leaving", False), bool), "leaving")
