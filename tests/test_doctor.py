"""The checks of this machine: what they find, and that none of them ends the others."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from swarmtui import cli, doctor
from swarmtui.config import Config, load

SCRIPTED = {"model": "scripted"}


def found(config: Config) -> dict[str, doctor.Check]:
    return {check.name: check for check in doctor.examine(config)}


def test_a_good_machine_is_all_good(tmp_path: Path) -> None:
    checks = found(load({**SCRIPTED, "data_dir": str(tmp_path / "not" / "yet")}))
    assert list(checks) == ["python", "libp2p", "terminal", "clock", "data", "network", "mdns", "model", "llama.cpp"]
    for name in ("python", "libp2p", "terminal", "clock", "data", "network", "model", "llama.cpp"):
        assert checks[name].verdict == "good", checks[name]
        assert not checks[name].remedy
    assert not (tmp_path / "not").exists(), "looking makes nothing"


def test_what_is_not_good_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        monkeypatch.setattr(doctor, "_own_addresses", list)
        monkeypatch.setattr("time.time", lambda: 1.0)
        flags = {"model": "no-such.gguf", "data_dir": str(blocked / "data"), "swarm.port": taken.getsockname()[1]}
        checks = found(load(flags))
    wanted = {"clock": "bad", "data": "warn", "network": "bad", "mdns": "warn", "model": "bad", "llama.cpp": "bad"}
    for name, verdict in wanted.items():
        assert checks[name].verdict == verdict, checks[name]
        assert checks[name].remedy, checks[name]


def test_an_open_lan_without_a_secret_is_warned_of() -> None:
    lan = {**SCRIPTED, "swarm.listen": "lan"}
    assert found(load(lan))["network"].verdict == "warn"
    assert found(load({**lan, "swarm.secret": "hush"}))["network"].verdict == "good"


def test_a_check_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(config: Config) -> doctor.Check:
        raise RuntimeError("no")

    monkeypatch.setattr(doctor, "_clock", broken)
    checks = found(load(SCRIPTED))
    assert checks["clock"].text == "couldn't be checked: RuntimeError: no"
    assert checks["data"].verdict == "good"


def test_the_command_prints_a_line_a_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.execute(["doctor", "--model", "scripted"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9
    assert cli.execute(["doctor", "--model", "no-such.gguf"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("✗ model") and "→" in line for line in lines)


@pytest.mark.model
def test_llama_decodes_here() -> None:
    check = found(load())["llama.cpp"]
    assert check.verdict == "good", check
