"""The keys of this program's peers, kept between runs so that a restarted agent is the same peer.

One file per identity, `<role>-<number>.key`, 32 bytes, readable by its owner alone. A lock on the file keeps two
programs from speaking with one voice, which would make both look faulty (two ops with one seq).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import IO

from swarmtui.files import reason_of
from swarmtui.plan.envelope import Identity
from swarmtui.plan.ops import PeerId


class Lease:
    """An identity that this program holds until `close`."""

    def __init__(
        self, identity: Identity, name: str, file: IO[bytes] | None, fresh: bool, taken: set[PeerId] | None = None
    ) -> None:
        """`taken`: the ids that are in use in this program; the lease's is there until it's closed."""
        self.identity = identity
        self._taken = taken if taken is not None else set()
        self._taken.add(identity.peer_id)
        self.fresh = fresh
        """Made just now: it can't have said anything before."""
        self.name = name
        """`<role>-<number>`, or '' for an identity that isn't on disk."""
        self._file = file

    def close(self) -> None:
        """Let another take it. The key stays on disk."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._taken.discard(self.identity.peer_id)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class Identities:
    """The folder of keys. Where it can't be written, identities live in memory and `notice` says so."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken: set[PeerId] = set()
        self.notice = ""

    def take(self, role: str) -> Lease:
        """The lowest-numbered identity of a role that nobody holds, made if there is none."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for number in range(1, 10_000):
                lease = self._try(f"{role}-{number}")
                if lease is not None:
                    return lease
        except OSError as error:
            self.notice = (
                f"keys can't be kept in {self._folder} ({reason_of(error)}): agents get new names at the next start. "
                "Free some space or choose another folder with --data-dir."
            )
        return Lease(Identity.from_seed(os.urandom(32)), "", None, fresh=True)

    def _try(self, name: str) -> Lease | None:
        """The identity of this name, or None if it's held already, or something else stands in its place."""
        path = self._folder / f"{name}.key"
        if not _can_be_a_key(path):
            return None
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            seed = file.read(33)
            fresh = len(seed) != 32
            if fresh:  # new, or torn by a crash: nobody can have used it
                seed = os.urandom(32)
                file.seek(0)
                file.truncate()
                file.write(seed)
                file.flush()
                os.fsync(file.fileno())
        except BlockingIOError:
            file.close()
            return None
        except OSError:
            file.close()
            raise
        identity = Identity.from_seed(seed)
        if identity.peer_id in self._taken:  # a copy of another key's file
            file.close()
            return None
        return Lease(identity, name, file, fresh, self._taken)


def _can_be_a_key(path: Path) -> bool:
    """Whether a file is there or can be made: no folder, no pipe (which would block us), no link to itself."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise
