"""Fetching a model from the hub: kept in a partial file of our own, since the hub's library throws away what it has
when it's interrupted. A file gets its name only when its size and SHA-256 are right.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from swarmtui.llm import memory, models
from swarmtui.llm.hub import HubFile, Offer, Repository
from swarmtui.llm.hub_library import explained, library
from swarmtui.llm.model import ModelError

SPARE = 256 << 20
"""Bytes that stay free on the disk."""
CHUNK = 4 << 20

Progress = Callable[[str, int, int], None]
"""Gets (what is done: getting or checking, bytes done, bytes in all), often."""


def fetch(
    repository: Repository, offer: Offer, folder: Path, progress: Progress, endpoint: str | None = None
) -> models.ModelFile:
    """Get a model into a folder; what is there already isn't got again.

    KeyboardInterrupt and the like leave a partial file, from which the next call goes on.

    Args:
        repository: what `hub.look` said.
        offer: one of its offers.
        folder: of the person's own models; the files come into one named after the repository.
        progress: told how far it is.
        endpoint: as for `hub.look`.

    Raises:
        ModelError: no room, no connection, or what came isn't what was promised.
    """
    target = folder / repository.name.replace("/", "--")
    done = [_Download(repository, file, target, endpoint) for file in offer.files]
    missing = sum(each.missing for each in done)
    with explained(repository.name, target):
        target.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(target).free
    if missing and missing + SPARE > free:
        raise ModelError(
            f"{offer.label} needs {memory.gigabytes(missing + SPARE)} more on the disk of {folder}, "
            f"{memory.gigabytes(free)} are free",
            "free some space, choose a smaller one, or set llm.folder to a folder on another disk",
        )
    before = 0
    for each in done:
        each.run(lambda what, count, at=before: progress(what, at + count, offer.size))  # type: ignore[misc]
        before += each.file.size
    found = models.inspect(done[0].path, source="own folder")
    if found.problem:
        raise ModelError(f"{found.name} was got, but can't be used: {found.problem}", "get another model")
    return found


class _Download:
    """One file on its way."""

    def __init__(self, repository: Repository, file: HubFile, folder: Path, endpoint: str | None) -> None:
        self.file = file
        self.path = folder / PurePosixPath(file.name).name
        # Of another version of the file nothing can be used: its part has another name.
        mark = hashlib.sha256((file.sha256 or repository.revision).encode()).hexdigest()[:12]
        self._part = folder / f"{self.path.name}.{mark}.part"
        self._repository = repository
        self._endpoint = endpoint

    @property
    def missing(self) -> int:
        """Bytes still to be got."""
        if self._there():
            return 0
        try:
            return max(0, self.file.size - self._part.stat().st_size)
        except OSError:
            return self.file.size

    def _there(self) -> bool:
        return self.path.is_file() and self.path.stat().st_size == self.file.size

    def run(self, progress: Callable[[str, int], None]) -> None:
        """Get it, check it, give it its name."""
        if self._there():
            progress("getting", self.file.size)
            return
        with explained(self._repository.name, self.path.parent), self._part.open("a+b") as part:
            try:
                fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ModelError(f"another swarmtui is getting {self.path.name} now", "wait for it") from None
            if part.seek(0, os.SEEK_END) > self.file.size:
                part.truncate(0)
            if part.seek(0, os.SEEK_END) < self.file.size:
                self._get(part, progress)
            part.flush()
            os.fsync(part.fileno())
            self._check(part, progress)
            os.replace(self._part, self.path)

    def _get(self, part: BinaryIO, progress: Callable[[str, int], None]) -> None:
        have = part.seek(0, os.SEEK_END)
        with library() as hub:
            from huggingface_hub import file_download
            from huggingface_hub.utils._headers import build_hf_headers

            name = self._repository.name
            url = hub.hf_hub_url(name, self.file.name, revision=self._repository.revision, endpoint=self._endpoint)
            headers = build_hf_headers(library_name="swarmtui")
            about = file_download.get_hf_file_metadata(url, headers=headers, endpoint=self._endpoint)
            if about.size is not None and about.size != self.file.size:
                raise ModelError(f"{self.path.name} has changed on the hub just now", "start again")
            if urlsplit(about.location).netloc != urlsplit(url).netloc:
                # A person's token is for the hub, not for the store that it sends us to.
                headers.pop("authorization", None)
            file_download.http_get(
                about.location,
                part,
                resume_size=have,
                headers=headers,
                expected_size=self.file.size,
                tqdm_class=_bar(have, progress),
            )

    def _check(self, part: BinaryIO, progress: Callable[[str, int], None]) -> None:
        """Compare the size and the hash with what the hub promised; what's wrong is thrown away."""
        size = part.seek(0, os.SEEK_END)
        part.seek(0)
        digest, done = hashlib.sha256(), 0
        while self.file.sha256 and (data := part.read(CHUNK)):
            digest.update(data)
            done += len(data)
            progress("checking", done)
        if size != self.file.size or (self.file.sha256 and digest.hexdigest() != self.file.sha256):
            self._part.unlink(missing_ok=True)
            raise ModelError(
                f"{self.path.name} was damaged on its way: its {'size' if size != self.file.size else 'hash'} is wrong",
                "get it again",
            )


def _bar(have: int, progress: Callable[[str, int], None]) -> type:
    """A class that the library takes for a tqdm bar; it only hands the numbers on."""

    class Bar:
        def __init__(self, *args: Any, **options: Any) -> None:
            self._done = int(options.get("initial", have))

        def __enter__(self) -> Bar:
            progress("getting", self._done)
            return self

        def __exit__(self, *exc: Any) -> None:
            return None

        def update(self, count: float | None = 1) -> None:
            self._done += int(count or 0)
            progress("getting", self._done)

    return Bar
