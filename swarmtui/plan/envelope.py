"""Sign, verify, encode and decode ops; ids and keys (docs/protocol.md, section 2).

An op travels as `[payload, signature]`. Its id is the payload's SHA-256. The signature covers a fixed prefix and the
payload, and is checked with the key that the author's peer id carries, before the body is decoded.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import NoReturn

import base58
import msgspec
from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

from .ops import (
    MAX_OP_BYTES,
    VERSION,
    AnyBody,
    Body,
    Goal,
    Hlc,
    InvalidOp,
    Op,
    OpId,
    Payload,
    PeerId,
    TaskId,
    Unknown,
    check,
)
from .plain import check_plain

SIGNED_PREFIX = b"swarmtui/op/1\0"
MAX_PAYLOAD_BYTES = MAX_OP_BYTES - 80
"""So that the payload alone decides whether an op fits, not the form in which somebody wraps it."""
# libp2p's peer id of an Ed25519 key: an identity multihash (code 0, 36 bytes) of the protobuf PublicKey message
# (field 1, type 1 = Ed25519; field 2, 32 bytes).
_PEER_ID_PREFIX = bytes.fromhex("0024080112" + "20")
_KEYS_CACHED = 4_096
_KINDS = frozenset({"goal", "proposal", "vote", "claim", "release", "result", "steer"})
_ACTS = frozenset({"policy", "pick", "veto", "retry", "note", "pause"})
_UNKNOWN = Unknown()


class _Sealed(msgspec.Struct, frozen=True):
    """A payload with its body decoded: encodes to the same bytes as the payload that `seal` makes."""

    v: int
    plan: bytes
    author: str
    seq: int
    hlc: int
    body: Body


class _Kind(msgspec.Struct):
    kind: str


class _Named(msgspec.Struct):
    act: str


class _Act(msgspec.Struct):
    act: _Named


_encoder = msgspec.msgpack.Encoder()
_wire_decoder = msgspec.msgpack.Decoder(tuple[bytes, bytes])
_header_decoder = msgspec.msgpack.Decoder(Payload)
_body_decoder: msgspec.msgpack.Decoder[AnyBody] = msgspec.msgpack.Decoder(AnyBody)
_kind_decoder = msgspec.msgpack.Decoder(_Kind)
_act_decoder = msgspec.msgpack.Decoder(_Act)


class Identity:
    """A peer's key pair."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key
        self.peer_id: PeerId = peer_id(bytes(key.verify_key))

    @classmethod
    def from_seed(cls, seed: bytes) -> Identity:
        """The identity of a 32-byte Ed25519 seed.

        Raises:
            ValueError: the seed isn't 32 bytes.
        """
        if len(seed) != 32:
            raise ValueError(f"a seed has 32 bytes, not {len(seed)}")
        return cls(SigningKey(seed))

    @property
    def seed(self) -> bytes:
        """The 32 bytes that this identity can be made from again. Secret."""
        return bytes(self._key)

    def sign(self, data: bytes) -> bytes:
        """The 64-byte Ed25519 signature of data."""
        return self._key.sign(data).signature

    def __repr__(self) -> str:
        return f"Identity({self.peer_id})"


def peer_id(public_key: bytes) -> PeerId:
    """The peer id text of a 32-byte Ed25519 public key."""
    return str(base58.b58encode(_PEER_ID_PREFIX + public_key), "ascii")


@lru_cache(maxsize=_KEYS_CACHED)
def _author(text: PeerId) -> tuple[VerifyKey, PeerId]:
    """The key inside a peer id, and one shared string for it, so that the ops of an author don't each keep a copy."""
    try:
        raw = base58.b58decode(text)
    except ValueError:
        raise InvalidOp("the author isn't base58") from None
    if len(raw) != len(_PEER_ID_PREFIX) + 32 or not raw.startswith(_PEER_ID_PREFIX):
        raise InvalidOp("the author isn't an Ed25519 peer id")
    key = raw[len(_PEER_ID_PREFIX) :]
    if peer_id(key) != text:
        # base58 overlooks trailing blanks: one key must not be two authors.
        raise InvalidOp("the author isn't in its canonical form")
    return VerifyKey(key), text


def verify_key(author: PeerId) -> VerifyKey:
    """The verify key that a peer id carries (cached).

    Raises:
        InvalidOp: it isn't the peer id of an Ed25519 key.
    """
    if len(author) > 128:
        raise InvalidOp("the author is too long for a peer id")
    return _author(author)[0]


def task_id(proposal: OpId, index: int) -> TaskId:
    """The id of the task that a proposal's step becomes."""
    return hashlib.sha256(proposal + bytes((index,))).digest()


def seal(identity: Identity, plan: OpId, seq: int, hlc: Hlc, body: Body) -> Op:
    """Make and sign an op.

    Args:
        plan: the goal's op id; b"" when the body is a goal.
        seq: 0, 1, 2 … per author and plan.

    Raises:
        InvalidOp: the body or a header field is outside its limits (peers would drop the op).
    """
    payload = _encoder.encode(_Sealed(VERSION, plan, identity.peer_id, seq, hlc, body))
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise InvalidOp(f"the op is larger than {MAX_OP_BYTES} bytes")
    try:
        head = _header_decoder.decode(payload)
    except msgspec.MsgspecError as error:
        _undecodable(error)
    return _decode(head, payload, identity.sign(SIGNED_PREFIX + payload), identity.peer_id)


def to_wire(op: Op) -> bytes:
    """The bytes in which an op travels."""
    return _encoder.encode((op.payload, op.signature))


def open_op(wire: bytes) -> Op:
    """Check and decode an op from anywhere.

    Raises:
        InvalidOp: and nothing else, whatever the bytes are.
    """
    if len(wire) > MAX_OP_BYTES:
        raise InvalidOp(f"the op is larger than {MAX_OP_BYTES} bytes")
    try:
        payload, signature = _wire_decoder.decode(wire)
        head = _header_decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        _undecodable(error)
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise InvalidOp(f"the op is larger than {MAX_OP_BYTES} bytes")
    key, author = _author(head.author)
    try:
        key.verify(SIGNED_PREFIX + payload, signature)
    except (CryptoError, ValueError):
        raise InvalidOp("the signature is bad") from None
    return _decode(head, payload, signature, author)


def _undecodable(error: Exception) -> NoReturn:
    raise InvalidOp(f"undecodable: {error}") from None


def _decode(head: Payload, payload: bytes, signature: bytes, author: PeerId) -> Op:
    if head.v != VERSION:
        raise InvalidOp(f"version {head.v} isn't known")
    body = _decode_body(payload, head)
    check(body)
    op_id = hashlib.sha256(payload).digest()
    plan = head.plan
    if type(body) is Goal:
        if plan:
            raise InvalidOp("a goal names a plan")
        if head.seq:
            raise InvalidOp("a goal isn't its author's first op of the plan")
        plan = op_id
    elif len(plan) != 32:
        raise InvalidOp("the plan isn't an op id")
    return Op(op_id, plan, author, head.seq, head.hlc, body, payload, signature)


def _decode_body(payload: bytes, head: Payload) -> Body:
    try:
        body: Body = _body_decoder.decode(head.body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        check_plain(payload)
        if _is_known(head.body):
            _undecodable(error)
        return _UNKNOWN
    # Our own encoding holds known fields of the right kinds only. Any other payload is walked value by value.
    if _encoder.encode(_Sealed(head.v, head.plan, head.author, head.seq, head.hlc, body)) != payload:
        check_plain(payload)
    return body


def _is_known(body: msgspec.Raw) -> bool:
    """Whether this version knows the body's kind (and a steer's act), so that failing to decode it is a fault.

    Raises:
        InvalidOp: there's no kind (or act) at all.
    """
    try:
        kind = _kind_decoder.decode(body).kind
        if kind == "steer":
            return _act_decoder.decode(body).act.act in _ACTS
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        _undecodable(error)
    return kind in _KINDS
