"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from swarmtui.files import WriteError, expanded, reason_of, write_whole


def test_a_failure_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file") as caught:
        (tmp_path / "nothing").read_text()
    assert reason_of(caught.value) == "No such file or directory"
    assert reason_of(OSError("no IPv4 address")) == "no IPv4 address", "the system didn't say it"
    assert reason_of(OverflowError("port must be 0-65535")) == "port must be 0-65535"


def test_a_file_is_written_and_nothing_else_is_left(tmp_path: Path) -> None:
    file = write_whole(tmp_path / "plan.md", "ünï\n\ud800")
    assert file.read_bytes() == "ünï\n?".encode()
    assert os.listdir(tmp_path) == ["plan.md"]
    mask = os.umask(0o022)
    os.umask(mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~mask


def test_another_file_is_never_touched_unasked(tmp_path: Path) -> None:
    file = tmp_path / "plan.md"
    file.write_text("mine")
    with pytest.raises(WriteError, match="exists"):
        write_whole(file, "new")
    assert file.read_text() == "mine"
    write_whole(file, "new", force=True)
    assert file.read_text() == "new"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "plan.md"
    real = os.fsync

    def late(descriptor: int) -> None:
        real(descriptor)
        file.write_text("theirs")

    monkeypatch.setattr(os, "fsync", late)
    with pytest.raises(WriteError, match="meanwhile"):
        write_whole(file, "new")
    assert file.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["plan.md"]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "plan.md"
    file.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="No space left"):
        write_whole(file, "new", force=True)
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["plan.md"]


def test_without_hard_links_the_rule_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(source: object, target: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", none)
    write_whole(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to(tmp_path / "real.md")
    write_whole(tmp_path / "link.md", "new", force=True)
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text() == "new"


@pytest.mark.parametrize("name", [".", "none/plan.md", "long" * 100, "long" * 100 + "/plan.md"])
def test_a_place_that_cannot_be_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(WriteError):
        write_whole(tmp_path / name, "new", force=True)


def test_the_home_of_nobody_is_a_name_like_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/plan.md") == tmp_path / "plan.md"
    assert expanded("~nobody-is-called-this/plan.md") == Path("~nobody-is-called-this/plan.md")


@pytest.mark.parametrize("force", [True, False])
def test_a_pipe_or_device_is_written_to_and_stays_one(tmp_path: Path, force: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for name in ("pipe", "link"):
            write_whole(tmp_path / name, "new", force)
            assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert (tmp_path / "link").is_symlink()
