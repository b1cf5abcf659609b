"""`swarmtui judge`: what it prints, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from swarmtui import cli

SPLITS = Path(__file__).parent / "data" / "splits_few.jsonl"


def judge(*arguments: str) -> int:
    return cli.execute(["judge", *arguments, "--model", "scripted"])


def test_a_model_that_tells_no_likelihoods_is_asked_for_marks(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge(str(SPLITS)) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("| flaw")
    assert [line.split("|")[1].strip() for line in lines[2:-1]] == [
        "none", "duplicate", "off-topic", "vague", "wrong-goal", "all flaws",
    ]  # fmt: skip
    assert "8 splits" in lines[-1]
    assert "tells no likelihoods" in err
    assert "8 of 8 splits marked" in err


def test_json_holds_every_mark_and_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge(str(SPLITS), "--json", "--quiet", "--goals", "2") == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["complete"] is True
    assert told["pass_mark"] == 60
    assert len(told["splits"]) == 4
    assert set(told["splits"][0]["verdicts"]) == {"written", "written, checked"} == set(told["tables"])
    assert "loading" not in err
    assert "marked" not in err


def test_each_split_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge(str(SPLITS), "--each", "--goals", "1") == 0
    out = capsys.readouterr().out
    assert "line 1: " in out
    assert "written, checked: " in out


def test_one_split_is_one_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "splits.jsonl"
    file.write_text(SPLITS.read_text().splitlines()[0])
    assert judge(str(file)) == 0
    out, err = capsys.readouterr()
    assert "1 split in" in out
    assert "1 of 1 split marked" in err


def test_bad_lines_are_named_and_the_rest_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "splits.jsonl"
    file.write_bytes(SPLITS.read_bytes() + b'nope\n{"goal": "x", "steps": []}\n')
    assert judge(str(file)) == 1
    out, err = capsys.readouterr()
    assert "8 splits" in out
    assert "line 9: JSON is malformed" in err
    assert "line 10: Expected `array` of length >= 1" in err


def test_a_flood_of_bad_lines_is_cut_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "splits.jsonl"
    file.write_bytes(b"x\n" * 50)
    assert judge(str(file)) == 1
    err = capsys.readouterr().err
    assert "line 20: " in err
    assert "line 21: " not in err
    assert "and 30 more lines" in err
    assert "no split in" in err


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_a_clear_failure(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge(str(tmp_path / name)) == 1
    assert "can't be read" in capsys.readouterr().err


def test_no_model_is_a_clear_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.execute(["judge", str(SPLITS), "--model", "no-such-model"]) == 1
    assert "no model called no-such-model" in capsys.readouterr().err


def test_markup_in_a_flaw_is_only_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "splits.jsonl"
    file.write_text('{"goal": "x", "flaw": "[/red]\\u001b[31m", "steps": ["a", "b"]}\n')
    assert judge(str(file)) == 0
    out = capsys.readouterr().out
    assert "[/red]" in out
    assert "\x1b" not in out


@pytest.mark.real
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_what_there_is(number: signal.Signals, code: int, tmp_path: Path) -> None:
    file = tmp_path / "splits.jsonl"
    # So many that it can't end by itself before the signal comes.
    file.write_bytes(SPLITS.read_bytes() * 500)
    command = [sys.executable, "-m", "swarmtui", "judge", str(file), "--model", "scripted"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if "splits marked" in line:
                    break
            process.send_signal(number)
            out, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == code
    assert "1 splits" in out or "| none" in out
