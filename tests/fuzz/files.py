"""Files that rotted or were made to hurt: journals, settings, models, keys, meeting files; and the engine's pipe."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from swarmtui import config
from swarmtui.llm import models, wire
from swarmtui.peer.frames import Opener
from swarmtui.peer.journal import Journal
from swarmtui.peer.libp2p.discovery import Folder
from swarmtui.plan.envelope import seal
from swarmtui.plan.ops import Goal, Note, Op, Steer
from swarmtui.swarm.identities import Identities

from .dice import Dice
from .material import PEOPLE, START, TEXTS
from .mutate import spoil, spoil_bytes
from .pack import pack
from .watching import nothing_unforeseen

PAGE = 4096


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder in memory, where there is such a thing: a fuzzer shouldn't wear a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
        yield Path(name)


# -- journals


@cache
def history() -> tuple[Op, ...]:
    who = PEOPLE[0]
    goal = seal(who, b"", 0, START, Goal("trip"))
    return (goal, *(seal(who, goal.id, n, START + n, Steer(Note(goal.id, "x" * 9 * n))) for n in range(1, 40)))


@cache
def _journal() -> bytes:
    with folder() as place:
        kept = Journal(place / "whole.db")
        kept.append(history())
        kept.close()
        return (place / "whole.db").read_bytes()


def journals(dice: Dice, inputs: int) -> None:
    with folder() as place, nothing_unforeseen():
        for number in range(inputs):
            path = place / str(number) / "swarm.db"
            path.parent.mkdir()
            path.write_bytes(_journal())
            spoil_journal(dice, path)
            check_journal(dice, path)
            shutil.rmtree(path.parent)


def spoil_journal(dice: Dice, path: Path) -> None:
    match dice.below(6):
        case 0 | 1:
            _spoil_rows(dice, path)
        case 2:
            path.write_bytes(_spoil_pages(dice, path.read_bytes()))
        case 3:
            path.write_bytes(spoil_bytes(dice, path.read_bytes()))
        case 4:
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).write_bytes(dice.octets(dice.choose([0, 31, 32, 5_000])))
        case 5:
            data = bytearray(path.read_bytes())  # the header, where each byte means something
            data[dice.below(108)] = dice.below(256)
            path.write_bytes(data)


def _spoil_pages(dice: Dice, data: bytes) -> bytes:
    pages = [data[at : at + PAGE] for at in range(0, len(data), PAGE)]
    for _ in range(1 + dice.below(3)):
        one, other = dice.below(len(pages)), dice.below(len(pages))
        match dice.below(4):
            case 0:
                pages[one], pages[other] = pages[other], pages[one]
            case 1:
                pages[one] = bytes(PAGE)
            case 2:
                pages[one] = (dice.octets(PAGE)).ljust(PAGE, b"\xa5")
            case 3:
                pages[one] = spoil_bytes(dice, pages[one])[:PAGE].ljust(PAGE, b"\0")
    return b"".join(pages)


def _spoil_rows(dice: Dice, path: Path) -> None:
    """Rows with any type in any column, as a rotten page holds them. No column is NOT NULL then."""
    values = [
        "NULL",
        "0",
        "-1",
        "9223372036854775807",
        "1.5",
        "9e999",
        "''",
        "'word'",
        "x''",
        "zeroblob(64)",
        "zeroblob(70000)",
    ]
    values += ["CAST(x'fffe' AS TEXT)", "randomblob(32)", "payload", "signature", "id", "hlc", "CAST(payload AS TEXT)"]
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.executescript(
            "ALTER TABLE ops RENAME TO old;"
            "CREATE TABLE ops (id BLOB, plan BLOB, author TEXT, hlc INTEGER, payload BLOB, signature BLOB);"
            "INSERT INTO ops SELECT * FROM old; DROP TABLE old; CREATE UNIQUE INDEX ops_id ON ops (id);"
        )
        for _ in range(1 + dice.below(4)):
            column = dice.choose(["id", "plan", "author", "hlc", "payload", "signature"])
            row = dice.below(len(history()))
            with contextlib.suppress(sqlite3.IntegrityError):
                db.execute(f"UPDATE ops SET {column} = {dice.choose(values)} WHERE rowid = {row + 1}")


def check_journal(dice: Dice, path: Path) -> None:
    """Nothing raises; and what is written after the damage comes back, also at the next start."""
    opener = Opener()
    kept = Journal(path, opener)
    known = {op.id for op in history()}
    for act in dice.shuffled(["load", "plans", "plan"]):
        if act == "load":
            assert {op.id for op in kept.load()} <= known
        elif act == "plans":
            msgspec.msgpack.encode(kept.plans())
        else:
            assert {op.id for op in kept.load(history()[0].id)} <= known
    written = kept.append(history())
    assert written == (not kept.degraded)
    assert all(isinstance(notice, str) for notice in kept.notices)
    if written:
        assert {op.id for op in kept.load()} == known
    kept.close()
    again = Journal(path, opener)
    if written:
        assert {op.id for op in again.load()} == known
        assert [plan.id for plan in again.plans()] == [history()[0].id]
    again.close()


# -- settings


def settings(dice: Dice, inputs: int) -> None:
    whole = config.template("strict").replace("# ", "").encode()
    with folder() as place:
        for _ in range(inputs):
            path = place / "config.toml"
            path.write_bytes(_toml(dice, whole))
            with contextlib.suppress(config.ConfigError):
                config.as_toml(config.load(file=path))
            name = dice.choose(
                ["SWARMTUI_SWARM_PORT", "SWARMTUI_AGENTS_SKILLS", "SWARMTUI_SEED", "SWARMTUI_SWARM_MDNS"]
            )
            with contextlib.suppress(config.ConfigError):
                config.load(env={name: dice.choose(_WORDS)}, file=path)


_WORDS = [
    *(
        "",
        "7",
        "-1",
        "1" * 5_000,
        "1e400",
        "nan",
        "true",
        "[]",
        "{}",
        '""',
        '"\\u0000"',
        '"/"',
        '"~nobody/x"',
        "\x00",
        "\udcff",
    ),
    *(
        "1979-05-27",
        "[" * 3_000,
        '"' + "x" * 300 + '"',
        "[1, [2]]",
        "{a = 1}",
        "9223372036854775808",
        '"all"',
        "'''\nx'''",
    ),
]


def _toml(dice: Dice, whole: bytes) -> bytes:
    lines = whole.split(b"\n")
    lines = [line for line in lines if b" = " in line or line.startswith(b"[")]
    for _ in range(dice.choose([0, 1, 1, 2])):
        at = dice.below(len(lines))
        key = lines[at].split(b" = ")[0]
        word = dice.choose(_WORDS).encode("utf-8", "surrogateescape")
        made = [
            key + b" = " + word,
            b"[" + word + b"]",
            lines[dice.below(len(lines))],
            key + b".more = 1",
            b"[[" + key + b"]]",
        ]
        lines[at] = dice.choose(made)
    data = b"\n".join(lines)
    return spoil_bytes(dice, data) if dice.chance(30) else data


# -- models' headers


def headers(dice: Dice, inputs: int) -> None:
    with folder() as place:
        path = place / "model.gguf"
        for _ in range(inputs):
            data = _gguf(dice)
            path.write_bytes(spoil_bytes(dice, data) if dice.chance(60) else data)
            found = models.inspect(path)
            assert found.problem or found.architecture
            msgspec.structs.asdict(found)
            msgspec.json.encode((found.name, found.title, found.architecture, found.quantisation, found.problem))


def _gguf(dice: Dice) -> bytes:
    def text(word: str) -> bytes:
        data = word.encode()
        return struct.pack("<Q", dice.choose([len(data)] * 12 + [0, 1 << 63, (1 << 64) - 1, 300_000])) + data

    def value(kind: int) -> bytes:
        if kind == 8:
            return text(dice.choose(TEXTS))
        if kind == 9:
            inner, count = dice.choose([0, 4, 8, 9, 12, 99]), dice.choose([0, 1, 3, 4_000_001, (1 << 64) - 1])
            return struct.pack("<IQ", inner, count) + b"".join(value(inner) for _ in range(count % 5) if inner != 9)
        return dice.octets({0: 1, 1: 1, 2: 2, 3: 2, 7: 1, 10: 8, 11: 8, 12: 8}.get(kind, 4))

    keys = [("general.architecture", 8), ("general.name", 8), ("general.file_type", 4), ("llama.context_length", 4)]
    keys += [("general.alignment", 4), ("tokenizer.chat_template", 8), ("tokenizer.ggml.tokens", 9)]
    made = b""
    for name, kind in keys:
        kind = dice.choose([kind] * 10 + list(range(14)))
        made += text(name) + struct.pack("<I", kind) + value(kind)
    tensors = dice.choose([0, 1, 1, 2, 65_537, (1 << 64) - 1])
    for _ in range(min(tensors, 2)):
        dimensions = dice.choose([1, 2, 0, 8, 9])
        sizes = [dice.choose([1, 32, 1 << 20, (1 << 64) - 1]) for _ in range(dimensions)]
        made += text("t") + struct.pack(f"<I{dimensions}Q", dimensions, *sizes)
        made += struct.pack("<IQ", dice.choose([0, 2, 12, 99]), dice.choose([0, 32, (1 << 64) - 1]))
    magic = dice.choose([b"GGUF"] * 9 + [b"GGML"])
    return (
        magic
        + struct.pack("<IQQ", dice.choose([2, 3, 3, 3, 1, 9]), tensors, dice.choose([len(keys)] * 9 + [4_097]))
        + made
    )


# -- keys


def keys(dice: Dice, inputs: int) -> None:
    for _ in range(inputs):
        with folder() as place, contextlib.ExitStack() as held:
            where = place / "keys"
            if dice.chance(10):
                where.write_bytes(b"in the way")
            else:
                where.mkdir()
                for number in range(1, 1 + dice.below(4)):
                    _strange_file(dice, where / f"scorer-{number}.key")
            source = Identities(where)
            leases = [held.enter_context(source.take("scorer")) for _ in range(3)]
            assert len({lease.identity.peer_id for lease in leases}) == 3, "two peers with one key"


def _strange_file(dice: Dice, path: Path) -> None:
    match dice.below(9):
        case 0:
            path.mkdir()
        case 1:
            os.mkfifo(path)
        case 2:
            path.symlink_to(path)
        case 3:
            path.symlink_to(path.with_name("scorer-1.key" if path.name != "scorer-1.key" else "elsewhere"))
        case 4:
            path.symlink_to("/dev/zero")
        case 5:
            path.write_bytes(bytes(32))  # the same key in two files
        case _:
            path.write_bytes(dice.octets(dice.choose([0, 1, 31, 32, 33, 64, 5_000])))


# -- where the programs of one machine meet


def meetings(dice: Dice, inputs: int) -> None:
    with folder() as place:
        here = Folder(place, "tag", "me")
        there = place / "tag"
        there.mkdir()
        for _ in range(inputs):
            who = dice.choose(PEOPLE).peer_id
            said: Any = {
                "pid": os.getpid(),
                "addresses": [f"/ip4/127.0.0.1/tcp/4001/p2p/{who}", "/ip4/::1/tcp/x", "/p2p/"],
            }
            for _ in range(dice.below(3)):
                said = spoil(dice, said)
            data = json(said)
            path = there / f"{dice.choose([who, 'x', '12D3'])}.json"
            path.write_bytes(spoil_bytes(dice, data) if dice.chance(40) else data)
            for peer, addresses in here._scan().items():
                assert all(address.strip().endswith(peer) for address in addresses)


def json(value: Any) -> bytes:
    """JSON of what `spoil` makes, as far as there is such a thing."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeError, TypeError, RecursionError):
        return msgspec.json.encode(msgspec.msgpack.decode(pack(value)))
    return b'{"pid": ' + b"[" * 5_000


# -- what comes from the engine's process


def pipes(dice: Dice, inputs: int) -> None:
    for _ in range(inputs):
        said: list[Any] = [
            {"is": "piece", "id": 1, "text": "word", "tokens": 1},
            {"is": "done", "id": 1, "text": "t", "value": {"a": [1]}, "tokens_in": 1, "tokens_cached": 0}
            | {"tokens_out": 1, "seconds": 0.5, "cut": False},
            {"is": "weighed", "id": 1, "means": [0.5, -1.5], "tokens_in": 1, "tokens_cached": 1},
            {"is": "ready", "name": "n", "slots": 1, "context": 1, "threads": 1, "notices": []},
            {"is": "generate", "id": 1, "system": "s", "prompt": "p", "schema": {}, "max_tokens": 1}
            | {"temperature": 1.0, "seed": 1},
        ]
        message = dice.choose(said)
        for _ in range(dice.choose([0, 1, 1, 2])):
            message = spoil(dice, message)
        body = pack(message, dice)
        data = struct.pack(">I", dice.choose([len(body)] * 9 + [0, 1 << 25, len(body) + 1])) + body
        data = spoil_bytes(dice, data) if dice.chance(20) else data
        check_pipe(data, 1 + dice.below(40))


def check_pipe(data: bytes, piece: int) -> None:
    wire.read(io.BytesIO(data))
    stream = wire.Unframer()
    with contextlib.suppress(wire.WireError):
        for at in range(0, min(len(data), 4_000), piece):
            list(stream.feed(data[at : at + piece]))
        list(stream.feed(data[4_000:]))
