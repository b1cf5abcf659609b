"""The copy on disk: damaged, full, read-only, gone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from swarmtui.peer.journal import Journal
from swarmtui.plan.ops import Op

from .world import EPOCH_MS, World, draft, goal, identity, note, op, until


def history(words: int = 20) -> list[Op]:
    author = identity(1)
    given = op(author, b"", 0, goal())
    return [given, *(op(author, given.id, n, note(given.id, "x" * 500), EPOCH_MS + n) for n in range(1, words))]


def ids(ops: object) -> list[bytes]:
    return [o.id for o in ops]  # type: ignore[attr-defined]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "swarm.journal"


def test_what_was_written_comes_back_in_order(path: Path) -> None:
    ops = history()
    kept = Journal(path)
    assert kept.append(reversed(ops))
    assert kept.append(ops), "again changes nothing"
    kept.close()
    again = Journal(path)
    assert ids(again.load()) == ids(ops)
    assert ids(again.load(ops[0].id)) == ids(ops)
    assert ids(again.load(b"?" * 32)) == []
    assert not again.notices
    again.close()


def test_plans_are_summed_up(path: Path) -> None:
    kept = Journal(path)
    kept.append(history(5))
    kept.append([op(identity(2), b"", 0, goal("later"), EPOCH_MS + 10_000)])
    later, first = kept.plans()
    assert (later.title, later.ops, later.operator) == ("later", 1, identity(2).peer_id)
    assert (first.title, first.ops, first.started) == ("plan a trip", 5, EPOCH_MS / 1000)
    kept.forget(later.id)
    assert [plan.id for plan in kept.plans()] == [first.id]
    kept.close()


@pytest.mark.parametrize("damage", ["text", "torn", "holes"])
def test_a_damaged_file_is_set_aside_and_started_anew(path: Path, damage: str) -> None:
    kept = Journal(path)
    kept.append(history(200))
    kept.close()
    data = path.read_bytes()
    if damage == "text":
        path.write_text("this is no database\n" * 500)
    elif damage == "torn":
        path.write_bytes(data[: len(data) // 2])
    else:
        path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 8192) + data[-4096:])
    again = Journal(path)
    left = ids(again.load())
    assert left == [op_id for op_id in ids(history(200)) if op_id in left], "what can still be read, and nothing else"
    assert again.append(history(200))
    assert ids(again.load()) == ids(history(200))
    assert again.path.with_name("swarm.journal.damaged-1").exists()
    assert any("set aside" in notice for notice in again.notices)
    assert not again.degraded
    again.close()


def test_a_row_that_rotted_is_dropped_and_can_be_filled_in_again(path: Path) -> None:
    ops = history(5)
    kept = Journal(path)
    kept.append(ops)
    kept.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE ops SET signature = zeroblob(64) WHERE id = ?", (ops[2].id,))
    db.close()
    again = Journal(path)
    assert ids(again.load()) == ids(ops[:2] + ops[3:])
    assert any("1 damaged ops" in notice for notice in again.notices)
    again.append(ops)
    assert ids(again.load()) == ids(ops)
    again.close()


def test_a_folder_that_cant_be_made_costs_the_journal_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    kept = Journal(tmp_path / "file" / "swarm.journal")
    assert not kept.append(history(3))
    assert list(kept.load()) == []
    assert kept.plans() == []
    assert "memory" in kept.degraded
    assert "Errno" not in kept.degraded


def test_a_file_that_cant_be_written_is_still_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ops = history(5)
    kept = Journal(path)
    kept.append(ops)
    kept.close()
    refusal = sqlite3.OperationalError("attempt to write a readonly database")
    refusal.sqlite_errorcode = sqlite3.SQLITE_READONLY

    def refuse(self: Journal) -> sqlite3.Connection:
        raise refusal

    monkeypatch.setattr(Journal, "_connect", refuse)
    locked = Journal(path)
    assert "can't be written" in locked.degraded
    assert ids(locked.load()) == ids(ops)
    assert [plan.ops for plan in locked.plans()] == [5]
    assert not locked.append(ops)


def test_a_file_of_a_later_version_isnt_touched(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 7")
    db.close()
    kept = Journal(path)
    assert not kept.append(history(3))
    assert "later version" in kept.degraded
    assert path.exists()


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:8192] + b"\0" * 50_000)


def fill(kept: Journal) -> None:
    """Make the disk full for this journal."""
    assert kept._db is not None
    pages = kept._db.execute("PRAGMA page_count").fetchone()[0]
    kept._db.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_full_disk_costs_the_copy_not_the_peer(
    nursery: trio.Nursery, autojump_clock: MockClock, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(nursery)
    kept = Journal(path)
    one = await world.start(1, journal=kept)
    two = await world.start(2)
    (given,) = await two.say(b"", goal())
    await until(world.equal)
    connect = Journal._connect

    def full(self: Journal) -> sqlite3.Connection:
        db = connect(self)
        db.execute("PRAGMA max_page_count = 1")
        return db

    monkeypatch.setattr(Journal, "_connect", full)
    fill(kept)
    await one.say(given.id, *(note(given.id, "x" * 3000) for _ in range(20)))
    assert any("disk is full" in notice for notice in one.notices)
    await until(world.equal)
    await two.say(given.id, draft(given.id))
    await until(world.equal)
    monkeypatch.setattr(Journal, "_connect", connect)
    await trio.sleep(31)
    await two.say(given.id, draft(given.id, "b"))
    await trio.sleep(5)
    assert not one.notices, "there's room again"
    assert len(list(kept.load())) == one.replica.count == 23, "what was missed is written as well"
    world.stop_all()


async def test_a_journal_that_breaks_while_it_runs_is_filled_again(
    nursery: trio.Nursery, autojump_clock: MockClock, path: Path
) -> None:
    world = World(nursery)
    one = await world.start(1, journal=Journal(path))
    two = await world.start(2)
    (given,) = await two.say(b"", goal())
    await two.say(given.id, *(note(given.id, "x" * 3000) for _ in range(50)))
    await until(world.equal)
    await trio.sleep(1)
    await world.end(1)
    tear(path)
    one = await world.start(1, journal=Journal(path), fresh=False)
    assert one.replica.count < 51
    assert any("set aside" in notice for notice in one.notices)
    await until(world.equal)
    await trio.sleep(1)
    await world.end(1)
    assert len(list(Journal(path).load())) == 51
    world.stop_all()


def test_what_rotted_in_a_row_or_an_index_costs_that_op_only(path: Path) -> None:
    """Text that is no UTF-8 made all rows unreadable; a flipped bit in an index lost ops and nobody noticed."""
    ops = history(50)
    kept = Journal(path)
    kept.append(ops)
    kept.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE ops SET payload = CAST(x'fffe' AS TEXT), hlc = 'soon' WHERE id = ?", (ops[2].id,))
    db.close()
    again = Journal(path)
    assert [plan.ops for plan in again.plans()] == [50]
    assert ids(again.load()) == ids(ops[:2] + ops[3:])
    again.append(ops)
    again.close()
    data = path.read_bytes()
    path.write_bytes(data.replace(ops[9].id, bytes(32), 1))
    third = Journal(path)
    assert set(ids(ops)) - set(ids(third.load())) <= {ops[9].id}
    third.append(ops)
    assert ids(third.load()) == ids(ops)
    assert any("set aside" in notice for notice in third.notices)
    third.close()


def test_a_file_that_breaks_while_it_is_used_keeps_what_can_be_read(path: Path) -> None:
    ops = history(60)
    kept = Journal(path)
    kept.append(ops[:50])
    kept.close()
    data = bytearray(path.read_bytes())
    data[-4096:] = bytes(4096)
    assert kept.append([])  # nothing to write: not looked at
    kept._reopen()
    path.write_bytes(data)
    for each in ops[50:]:
        kept.append([each])
    kept.close()
    assert set(ids(ops[50:])) <= set(ids(Journal(path).load()))
