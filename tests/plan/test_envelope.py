"""Signing and opening: what is let in, and that nothing else but InvalidOp comes out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.exceptions import BadSignatureError

from swarmtui.plan import envelope
from swarmtui.plan.envelope import (
    MAX_PAYLOAD_BYTES,
    SIGNED_PREFIX,
    Identity,
    open_op,
    seal,
    task_id,
    to_wire,
    verify_key,
)
from swarmtui.plan.ops import (
    MAX_OP_BYTES,
    Claim,
    Goal,
    InvalidOp,
    Marks,
    Note,
    Op,
    Pause,
    Pick,
    Policy,
    Proposal,
    Release,
    Result,
    Retry,
    SetPolicy,
    Steer,
    Step,
    Unknown,
    Veto,
    Vote,
)
from swarmtui.plan.plain import MAX_ELEMENTS, MAX_NESTING

ADA = Identity.from_seed(bytes(32))
PLAN, ID = b"p" * 32, b"i" * 32
BODIES = [
    Proposal(ID, (Step("a"), Step("b", "more", True, "cook", (0,))), "because", "by day", ID),
    Vote(ID, True, Marks(0, 50, 100), "vague"),
    Claim(ID),
    Claim(ID, ID),
    Release(ID, "no"),
    Result(ID, "done 🗾"),
    *(Steer(act) for act in (SetPolicy(Policy()), Pick(ID), Veto(ID), Retry(ID), Note(ID, "mind"), Pause(True))),
]


def wire(payload: bytes, who: Identity = ADA) -> bytes:
    return msgspec.msgpack.encode((payload, who.sign(SIGNED_PREFIX + payload)))


def signed(body: Any, **header: Any) -> bytes:
    fields = {"v": 1, "plan": PLAN, "author": ADA.peer_id, "seq": 0, "hlc": 5, "body": body} | header
    return wire(msgspec.msgpack.encode(fields))


def raw(body: bytes) -> bytes:
    """A well-formed header around the raw bytes of a body."""
    return signed(msgspec.Raw(body))


# -- round trips and identities


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body)[:24])
def test_an_op_comes_out_as_it_was_sealed(body: Any) -> None:
    op = seal(ADA, PLAN, 7, 99, body)
    opened = open_op(to_wire(op))
    assert opened.body == body
    for field in ("id", "plan", "author", "seq", "hlc", "payload", "signature"):
        assert getattr(opened, field) == getattr(op, field)


def test_a_goal_s_plan_is_its_own_id() -> None:
    op = open_op(to_wire(seal(ADA, b"", 0, 5, Goal("Trip"))))
    assert op.plan == op.id


def test_peer_ids_are_libp2p_s_own() -> None:
    ed25519 = pytest.importorskip("libp2p.crypto.ed25519")
    peer_id = pytest.importorskip("libp2p.peer.id")
    for seed in (bytes(32), bytes(range(32))):
        theirs = ed25519.create_new_key_pair(seed)
        assert str(peer_id.ID.from_pubkey(theirs.public_key)) == Identity.from_seed(seed).peer_id
        signature = Identity.from_seed(seed).sign(b"data")
        assert theirs.public_key.verify(b"data", signature)


def test_an_identity_is_made_from_its_seed_again() -> None:
    assert Identity.from_seed(ADA.seed).peer_id == ADA.peer_id
    verify_key(ADA.peer_id).verify(b"data", ADA.sign(b"data"))
    with pytest.raises(ValueError, match="32 bytes"):
        Identity.from_seed(b"short")
    assert ADA.seed.hex() not in repr(ADA)


def test_a_task_s_id_is_bound_to_proposal_and_index() -> None:
    assert len({task_id(ID, 0), task_id(ID, 1), task_id(PLAN, 0)}) == 3


# -- what is refused


def test_every_changed_byte_is_noticed() -> None:
    good = to_wire(seal(ADA, PLAN, 0, 5, Vote(ID, True, Marks(1, 2, 3))))
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 1
        with pytest.raises(InvalidOp):
            open_op(bytes(bad))


def test_the_payload_alone_decides_whether_an_op_fits() -> None:
    """Also in its longest wrapping: peers that are sent different ones must judge alike."""
    room = MAX_PAYLOAD_BYTES - len(msgspec.msgpack.decode(signed({"kind": "song", "x": bytes(60_000)}))[0])
    for more, fits in ((0, True), (1, False)):
        payload, signature = msgspec.msgpack.decode(signed({"kind": "song", "x": bytes(60_000 + room + more)}))
        assert len(payload) == MAX_PAYLOAD_BYTES + more
        loose = b"\xdd\0\0\0\2\xc6" + len(payload).to_bytes(4, "big") + payload + b"\xc6\0\0\0\x40" + signature
        for wrapped in (msgspec.msgpack.encode((payload, signature)), loose):
            if fits:
                assert open_op(wrapped).payload == payload
            else:
                with pytest.raises(InvalidOp, match="larger"):
                    open_op(wrapped)


def test_a_word_is_the_word_and_not_a_line_of_it() -> None:
    with pytest.raises(InvalidOp):
        open_op(signed({"kind": "goal", "title": "Trip", "policy": {"synthesis": "root\n"}}, plan=b""))


def test_another_s_signature_is_refused() -> None:
    payload = seal(ADA, PLAN, 0, 5, Claim(ID)).payload
    with pytest.raises(InvalidOp, match="signature"):
        open_op(wire(payload, Identity.from_seed(b"x" * 32)))


def test_the_signature_is_checked_before_the_body_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Untouched:
        def decode(self, data: bytes) -> None:
            raise AssertionError("decoded before it was checked")

    payload = seal(ADA, PLAN, 0, 5, Claim(ID)).payload
    monkeypatch.setattr(envelope, "_body_decoder", Untouched())
    with pytest.raises(InvalidOp, match="signature"):
        open_op(msgspec.msgpack.encode((payload, bytes(64))))


@pytest.mark.parametrize(
    "header",
    [
        {"v": 2},
        {"v": True},
        {"plan": b""},
        {"plan": b"short"},
        {"plan": "p" * 32},
        {"seq": -1},
        {"seq": 1 << 16},
        {"hlc": -1},
        {"hlc": 1 << 63},
        {"author": ADA.peer_id + " "},
        {"author": "\n" + ADA.peer_id},
        {"author": ""},
        {"author": "12D3KooW"},
        {"author": "é" * 52},
        {"author": "1" * 129},
        {"author": "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"},
        {"more": None},
    ],
    ids=repr,
)
def test_a_header_outside_its_limits_is_refused(header: dict[str, Any]) -> None:
    with pytest.raises(InvalidOp):
        open_op(signed({"kind": "claim", "task": ID}, **header))


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "goal", "title": "x"},  # names a plan
        {"kind": "claim"},
        {"kind": "claim", "task": b"short"},
        {"kind": "claim", "task": "t" * 32},
        {"kind": "claim", "task": ID, "prior": b"short"},
        {"kind": "vote", "proposal": ID, "approve": 1, "marks": {"specific": 1, "distinct": 1, "complete": 1}},
        {"kind": "vote", "proposal": ID, "approve": True, "marks": {"specific": 101, "distinct": 1, "complete": 1}},
        {"kind": "result", "claim": ID, "output": ""},
        {"kind": "result", "claim": ID, "output": "x" * 32_001},
        {"kind": "proposal", "task": ID, "steps": [{"title": "lonely"}]},
        {"kind": "proposal", "task": ID, "steps": [{"title": "a"}] * 17},
        {"kind": "proposal", "task": ID, "steps": [{"title": "a", "after": [0]}, {"title": "b"}]},
        {"kind": "proposal", "task": ID, "steps": [{"title": "a"}, {"title": "b", "after": [-1]}]},
        {"kind": "proposal", "task": ID, "steps": [{"title": "a"}, {"title": "  "}]},
        {"kind": "proposal", "task": ID, "steps": [{"title": "a"}, {"title": "b" * 201}]},
        {"kind": "steer", "act": {"act": "note", "task": ID, "text": ""}},
        {"kind": "steer", "act": {"act": "pause", "on": 1}},
        {"kind": "steer", "act": {"act": "policy", "policy": {"need": 4, "of": 3}}},
        {"kind": "steer", "act": {"act": "policy", "policy": {"synthesis": "sometimes"}}},
        {"kind": "steer", "act": {}},
        {"kind": "steer", "act": "pause"},
        {"kind": "steer"},
        {"kind": 7},
        {},
        [],
        "claim",
        0,
        True,
        None,
        1.5,
    ],
    ids=lambda body: repr(body)[:60],
)
def test_a_body_outside_its_limits_is_refused(body: Any) -> None:
    with pytest.raises(InvalidOp):
        open_op(signed(body))


def test_a_goal_is_its_author_s_first_op_of_the_plan() -> None:
    with pytest.raises(InvalidOp, match="first"):
        seal(ADA, b"", 1, 5, Goal("Trip"))


def test_sealing_refuses_what_opening_would() -> None:
    for body in (Result(ID, ""), Goal(" "), Claim(b"short"), Goal("x" * 201)):
        with pytest.raises(InvalidOp):
            seal(ADA, PLAN if not isinstance(body, Goal) else b"", 0, 5, body)
    with pytest.raises(InvalidOp):
        seal(ADA, PLAN, 1 << 16, 5, Claim(ID))


def test_an_op_that_is_too_large_is_refused_unread() -> None:
    steps = tuple(Step("step", "é" * 4_000) for _ in range(16))
    with pytest.raises(InvalidOp, match="larger"):
        seal(ADA, PLAN, 0, 5, Proposal(ID, steps))
    with pytest.raises(InvalidOp, match="larger"):
        open_op(bytes(MAX_OP_BYTES + 1))


def test_the_largest_op_that_is_sealed_can_be_opened() -> None:
    for length in range(3_950, 4_001):
        steps = tuple(Step("step", "é" * 2_000) for _ in range(15)) + (Step("s", "x" * length),)
        try:
            op = seal(ADA, PLAN, 0, 5, Proposal(ID, steps))
        except InvalidOp:
            continue
        assert open_op(to_wire(op)).id == op.id


# -- what isn't known


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "song"},
        {"kind": "unknown"},
        {"kind": "song", "notes": [1, True, b"x", {"loud": ["x", -5, 1 << 63]}]},
        {"kind": "steer", "act": {"act": "dance", "steps": 3}},
        {"kind": "steer", "act": {"act": "unknown"}},
    ],
    ids=repr,
)
def test_unknown_kinds_and_acts_are_kept(body: Any) -> None:
    op = open_op(signed(body))
    assert isinstance(op.body, Unknown)
    assert open_op(to_wire(op)).id == op.id


def test_unknown_fields_of_known_kinds_are_let_be() -> None:
    op = open_op(signed({"kind": "claim", "task": ID, "mood": ["fine"]}, later={"a": 1}))
    assert op.body == Claim(ID)


FORBIDDEN = {
    "nil": b"\xc0",
    "never used": b"\xc1",
    "float": msgspec.msgpack.encode(1.5),
    "float32": b"\xca\x00\x00\x00\x00",
    "extension": b"\xd4\x01x",
    "timestamp": b"\xd6\xff\x00\x00\x00\x00",
    "bad utf-8": b"\xa2\xff\xfe",
    "surrogate": b"\xa3\xed\xa0\x80",
    "number as key": b"\x81\x01\x01",
    "bytes as key": b"\x81\xc4\x01a\x01",
    "key twice": b"\x82\xa1a\x01\xa1a\x01",
    "key twice, encoded differently": b"\x82\xa1a\x01\xd9\x01a\x01",
    "nested too deep": b"\x91" * (MAX_NESTING + 1) + b"\x01",
    "bomb": b"\x91" * 60_000 + b"\x01",
    "too many": b"\xdc" + MAX_ELEMENTS.to_bytes(2, "big") + b"\x01" * MAX_ELEMENTS,
    "promises a lot": b"\xdd\xff\xff\xff\xff",
    "map that promises a lot": b"\xdf\xff\xff\xff\xff",
    "text that promises a lot": b"\xdb\xff\xff\xff\xff",
}


@pytest.mark.parametrize("value", FORBIDDEN.values(), ids=FORBIDDEN.keys())
@pytest.mark.parametrize(
    "around",
    [
        b"\x82\xa4kind\xa4song\xa5notes",
        b"\x83\xa4kind\xa5claim\xa4task\xc4\x20" + ID + b"\xa5notes",
        b"\x82\xa4kind\xa5steer\xa3act\x82\xa3act\xa5dance\xa5notes",
    ],
    ids=["unknown kind", "unknown field", "unknown act"],
)
def test_what_has_no_place_in_an_op_is_refused_wherever_it_stands(value: bytes, around: bytes) -> None:
    with pytest.raises(InvalidOp):
        open_op(raw(around + value))


def test_bytes_behind_the_payload_are_refused() -> None:
    payload = seal(ADA, PLAN, 0, 5, Claim(ID)).payload
    with pytest.raises(InvalidOp):
        open_op(wire(payload + b"\x01"))
    with pytest.raises(InvalidOp):
        open_op(to_wire(seal(ADA, PLAN, 0, 5, Claim(ID))) + b"\x01")


# -- anything at all

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


def opens_or_refuses(data: bytes) -> Op | None:
    try:
        return open_op(data)
    except InvalidOp:
        return None


@given(st.binary(max_size=400))
def test_any_bytes_are_refused_in_order(data: bytes) -> None:
    assert opens_or_refuses(data) is None
    opens_or_refuses(wire(data))


@given(plain)
def test_any_value_is_refused_in_order(value: Any) -> None:
    assert opens_or_refuses(msgspec.msgpack.encode(value)) is None
    opens_or_refuses(wire(msgspec.msgpack.encode(value)))


@given(plain, st.sampled_from(["goal", "proposal", "vote", "claim", "release", "result", "steer", "song"]), st.data())
def test_any_signed_body_opens_or_is_refused(value: Any, kind: str, data: st.DataObject) -> None:
    fields = ["task", "steps", "proposal", "approve", "marks", "claim", "output", "act", "title", "policy", "base"]
    body = {"kind": kind} | data.draw(st.dictionaries(st.sampled_from(fields), plain, max_size=4))
    op = opens_or_refuses(signed(body, more=value))
    if op is not None:
        assert open_op(to_wire(op)).id == op.id


@given(st.sampled_from(BODIES), st.integers(0, 400), st.binary(max_size=4), st.integers(0, 4))
def test_a_damaged_payload_that_its_author_signed_opens_or_is_refused(
    body: Any, at: int, patch: bytes, cut: int
) -> None:
    payload = seal(ADA, PLAN, 0, 5, body).payload
    opens_or_refuses(wire(payload[:at] + patch + payload[at + cut :]))


def test_a_key_that_no_signature_fits_is_refused() -> None:
    """An all-zero public key is of small order: libsodium takes no signature by it."""
    author = envelope.peer_id(bytes(32))
    payload = msgspec.msgpack.encode(
        {"v": 1, "plan": PLAN, "author": author, "seq": 0, "hlc": 5, "body": {"kind": "claim", "task": ID}}
    )
    with pytest.raises(InvalidOp):
        open_op(msgspec.msgpack.encode((payload, bytes(64))))
    with pytest.raises(BadSignatureError):
        verify_key(author).verify(b"", bytes(64))
