"""What the fuzzer found, an example each. (What it found in journals stands in tests/peer/test_journal.py.)"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from swarmtui import config
from swarmtui.llm import wire
from swarmtui.peer.libp2p.discovery import Folder
from swarmtui.plan.envelope import seal
from swarmtui.plan.ops import Goal
from swarmtui.plan.replica import Replica
from swarmtui.swarm.identities import Identities
from tests.plan.histories import OPERATOR, START, foreign


@pytest.mark.parametrize("value", ["1" * 5_000, "[" * 3_000], ids=["a number too long", "nested too deep"])
def test_settings_that_python_chokes_on_are_a_mistake_like_others(tmp_path: Path, value: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[swarm]\nport = {value}\n")
    with pytest.raises(config.ConfigError, match=r"config\.toml"):
        config.load(file=file)


def test_a_meeting_file_that_is_nested_too_deep_is_removed(tmp_path: Path) -> None:
    """It ended the network of the peer that looked."""
    here = Folder(tmp_path, "tag", "me")
    (tmp_path / "tag").mkdir()
    bad = tmp_path / "tag" / "12D3.json"
    bad.write_text('{"pid": ' + "[" * 5_000)
    assert here._scan() == {}
    assert not bad.exists()


def test_an_engine_that_talks_nonsense_is_nonsense_however_deep() -> None:
    body = b"\x81\xa2is\xa4done\xa5value" + b"\x91" * 5_000
    body = b"\x89" + body[1:]
    with pytest.raises(wire.WireError):
        list(wire.Unframer().feed(struct.pack(">I", len(body)) + body))


def test_a_copy_of_a_key_is_no_second_identity(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"scorer-{number}.key").write_bytes(b"k" * 32)
    source = Identities(tmp_path)
    with source.take("scorer") as one, source.take("scorer") as two:
        assert one.identity.peer_id != two.identity.peer_id
        assert (one.name, two.name) == ("scorer-1", "scorer-3")
    with source.take("scorer") as again:
        assert (again.identity.peer_id, again.name) == (one.identity.peer_id, "scorer-1")


def test_what_is_no_file_in_the_keys_folder_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "scorer-1.key").mkdir()
    os.mkfifo(tmp_path / "scorer-2.key")
    (tmp_path / "scorer-3.key").symlink_to(tmp_path / "scorer-3.key")
    (tmp_path / "scorer-4.key").symlink_to("/dev/zero")
    source = Identities(tmp_path)
    with source.take("scorer") as lease:
        assert lease.name == "scorer-5"
    assert not source.notice


def test_a_policy_that_spells_out_a_default_is_no_other_policy() -> None:
    """The picture left out defaults by identity, so it depended on which of two equal policies came first."""
    goal = seal(OPERATOR, b"", 0, START, Goal("trip"))
    policies = [{"need": 1}, {"need": 1, "skills": ["write"], "fan_out": [2, 6]}]
    steers = [
        foreign(OPERATOR, goal.id, n, START + n, {"kind": "steer", "act": {"act": "policy", "policy": policy}})
        for n, policy in enumerate(policies, 1)
    ]
    pictures = set()
    for order in (steers, steers[::-1]):
        replica = Replica()
        for op in (goal, *order):
            replica.add(op)
        pictures.add(replica.picture(goal.id))
    assert len(pictures) == 1
