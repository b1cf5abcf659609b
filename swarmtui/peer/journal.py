"""A copy on disk of the ops that were heard here: SQLite in WAL mode, one file for all local peers of a swarm.

It is never "the" plan: delete it and the swarm fills it again. A damaged file is set aside under another name, and what
can still be read of it goes into a new one: the signatures tell what's good. A full or read-only disk costs the copy,
not the peer. Nothing here raises into the peer: `degraded` says what is wrong.

The ops aren't kept per peer. An op is signed by its author whoever heard it, so one row serves all, and a commit that
holds one peer's copy of an op holds its author's too. One file must not serve two swarms, or one swarm's plans would be
told to the other.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from swarmtui.files import reason_of
from swarmtui.plan.clock import to_seconds
from swarmtui.plan.ops import Goal, InvalidOp, Op, OpId, PeerId

from .frames import SHARED, Opener

log = logging.getLogger(__name__)

SCHEMA = 1
_TABLE = """
CREATE TABLE IF NOT EXISTS ops (
    id BLOB PRIMARY KEY,
    plan BLOB NOT NULL,
    author TEXT NOT NULL,
    hlc INTEGER NOT NULL,
    payload BLOB NOT NULL,
    signature BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS ops_by_plan ON ops (plan, hlc);
"""
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_LOCKED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}


class PlanSummary(msgspec.Struct, frozen=True):
    """A plan that the journal holds."""

    id: OpId
    title: str
    operator: PeerId
    ops: int
    started: float
    """Unix seconds of the goal."""
    latest: float
    """Unix seconds of the latest op."""


class Journal:
    """The ops on disk. Used from one thread at a time."""

    def __init__(self, path: Path, opener: Opener = SHARED) -> None:
        """Open or make the file. Damage, a full disk or a missing right shows in `notices` and `degraded`.

        Args:
            path: the file; its folder is made if needed.
            opener: checks ops as they're loaded.
        """
        self.path = Path(path)
        self.degraded = ""
        """Why ops aren't written now; '' while they are."""
        self.notices: list[str] = []
        """What happened to the file, for a person, with the remedy."""
        self.damaged = False
        """Whether it was found damaged in this run, so that others may know more of what was said than it does."""
        self._opener = opener
        self._checked = False
        self._aside: Path | None = None
        self._db: sqlite3.Connection | None = None
        self._reopen()

    def append(self, ops: Iterable[Op]) -> bool:
        """Write ops in one transaction; ops that are there already stay as they are.

        Returns:
            True once they are safe from the end of this process. False when they aren't written: see `degraded`.
        """
        rows = [(op.id, op.plan, op.author, op.hlc, op.payload, op.signature) for op in ops]
        if not rows:
            return not self.degraded
        for _ in range(2):
            if self._db is None:
                self._reopen()
            if self._db is None:
                return False
            try:
                with self._db:
                    self._db.executemany("INSERT OR IGNORE INTO ops VALUES (?, ?, ?, ?, ?, ?)", rows)
            except sqlite3.Error as error:
                self._fail(error)
                continue
            if self.degraded:
                self.degraded = ""
                log.info("the journal %s is written again", self.path)
            return True
        return False

    def load(self, plan: OpId | None = None) -> Iterator[Op]:
        """Yield what the file holds (of one plan, or all), oldest first, each checked again.

        Ops that don't stand the check any more are deleted, so that the peers can fill them in again.
        """
        where, arguments = ("WHERE plan = ?", (plan,)) if plan is not None else ("", ())
        bad = 0
        for row, op_id, payload, signature in self._rows(
            f"SELECT rowid, id, payload, signature FROM ops {where} ORDER BY hlc, id", arguments
        ):
            op = self._open(row, op_id, payload, signature)
            if op is None:
                bad += 1
            else:
                yield op
        if bad:
            self.damaged = True
            self.notices.append(f"{bad} damaged ops in {self.path} were dropped; other peers can fill them in again.")

    def plans(self) -> list[PlanSummary]:
        """Summarise the plans in the file whose goal is there, latest first."""
        found = []
        query = """SELECT ops.rowid, ops.id, ops.payload, ops.signature, seen.many, seen.latest FROM ops JOIN
            (SELECT plan, count(*) AS many, max(iif(typeof(hlc) = 'integer', hlc, 0)) AS latest
             FROM ops GROUP BY plan) AS seen ON ops.id = seen.plan
            ORDER BY seen.latest DESC"""
        for row, op_id, payload, signature, many, latest in self._rows(query, ()):
            op = self._open(row, op_id, payload, signature)
            if op is not None and isinstance(op.body, Goal):
                found.append(PlanSummary(op.id, op.body.title, op.author, many, to_seconds(op.hlc), to_seconds(latest)))
        return found

    def forget(self, plan: OpId) -> None:
        """Delete a plan's ops from the file."""
        if self._db is None:
            return
        try:
            with self._db:
                self._db.execute("DELETE FROM ops WHERE plan = ?", (plan,))
        except sqlite3.Error as error:
            self._fail(error)

    def close(self) -> None:
        """Close the file; a later append opens it again."""
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def _rows(self, query: str, arguments: tuple[object, ...]) -> list[Any]:
        if self._db is None:
            return self._rows_without_rights(query, arguments)
        try:
            return self._db.execute(query, arguments).fetchall()
        except sqlite3.Error as error:
            self._fail(error)
            return []

    def _rows_without_rights(self, query: str, arguments: tuple[object, ...]) -> list[Any]:
        """Read a file that can't be written (a closed one, too)."""
        where = f"file:{quote(str(self.path))}?mode=ro"
        for uri in (where, where + "&immutable=1"):  # the second needs no lock files beside it, but misses the latest
            try:
                with contextlib.closing(sqlite3.connect(uri, uri=True)) as db:
                    db.text_factory = bytes
                    return db.execute(query, arguments).fetchall()
            except sqlite3.Error as error:
                log.debug("reading %s: %s", uri, error)
        return []

    def _open(self, row: int, op_id: object, payload: object, signature: object) -> Op | None:
        try:
            op = self._opener(msgspec.msgpack.encode((payload, signature)))
            if op.id == op_id:
                return op
        except InvalidOp:
            pass
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error), self._db:
                self._db.execute("DELETE FROM ops WHERE rowid = ?", (row,))
        return None

    def _reopen(self) -> None:
        for _ in range(2):
            try:
                self._db = self._connect()
                self._salvage()
                return
            except (sqlite3.Error, OSError) as error:
                self._fail(error)
                if self.degraded:
                    return

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=2.0, check_same_thread=False)
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA:
                raise _Newer(f"it was made by a later version (schema {version})")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            if not self._checked:
                verdict = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
                if verdict != "ok":
                    raise _Damaged(verdict)
                self._checked = True
            db.executescript(_TABLE)
            if version != SCHEMA:
                db.execute(f"PRAGMA user_version = {SCHEMA}")
            # In a page that rotted anything may be text, and no UTF-8: it mustn't make the rows around it unreadable.
            db.text_factory = bytes
        except BaseException:
            db.close()
            raise
        return db

    def _fail(self, error: Exception) -> None:
        """Close the file, and set it aside if it's damaged, else note why it can't be written."""
        self.close()
        self._checked = False
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if isinstance(error, _Damaged) or code in _DAMAGED:
            self._set_aside(error)
            return
        if code in _FULL:
            why, remedy = "the disk is full or failing", "free some space"
        elif code in _LOCKED or isinstance(error, PermissionError):
            why, remedy = "the file or its folder can't be written", "check the rights, or choose another data folder"
        elif isinstance(error, _Newer):
            why, remedy = str(error), "update swarmtui, or choose another data folder"
        else:
            why = reason_of(error)
            remedy = "check the data folder, or choose another"
        if not self.degraded:
            log.warning("the journal %s isn't written: %s", self.path, error)
        self.degraded = f"The journal {self.path} isn't written ({why}). The plan goes on in memory: {remedy}."

    def _set_aside(self, error: Exception) -> None:
        names = (f"{self.path.name}.damaged-{n}" for n in itertools.count(1))
        aside = next(path for name in names if not (path := self.path.with_name(name)).exists())
        try:
            self.path.rename(aside)
            for suffix in ("-wal", "-shm"):
                extra = self.path.with_name(self.path.name + suffix)
                if extra.exists():
                    extra.rename(aside.with_name(aside.name + suffix))
        except OSError as failure:
            self.degraded = f"The journal {self.path} is damaged and can't be set aside ({failure}): delete it."
            return
        log.warning("the journal %s was damaged: %s", self.path, error)
        self._aside = aside
        self.damaged = True
        self.notices.append(
            f"The journal {self.path} was damaged ({error}). It was set aside as {aside.name} and started anew; "
            "other peers fill it again."
        )

    def _salvage(self) -> None:
        """Copy what is still good in the file that was set aside. Its order on disk: an index may be what rotted."""
        aside, self._aside = self._aside, None
        if aside is None or self._db is None:
            return
        good: list[Op] = []
        try:
            with contextlib.closing(sqlite3.connect(f"file:{quote(str(aside))}?mode=ro", uri=True)) as db:
                db.text_factory = bytes
                for payload, signature in db.execute("SELECT payload, signature FROM ops NOT INDEXED"):
                    with contextlib.suppress(InvalidOp):
                        good.append(self._opener(msgspec.msgpack.encode((payload, signature))))
        except sqlite3.Error as error:
            log.debug("the rest of %s can't be read: %s", aside, error)
        if good and self.append(good):
            self.notices.append(f"Ops that were still good in it: {len(good)}.")


class _Newer(sqlite3.Error):
    """The file is of a later schema."""


class _Damaged(sqlite3.Error):
    """The file doesn't stand SQLite's check."""
