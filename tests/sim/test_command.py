"""`swarmtui simulate`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from swarmtui.cli.root import cli
from swarmtui.peer.store import Store


def asked(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["simulate", *arguments], standalone_mode=False)
    code = done.return_value if done.exception is None else 2
    return int(code or 0), done.output + str(done.exception or "")


def test_figures() -> None:
    code, text = asked("--seeds", "0..5", "--peers", "5..6", "--json")
    told = json.loads(text)
    assert code == 0
    assert (told["runs"], told["divergences"], told["double_results"], told["stalled_plans"]) == (6, 0, 0, 0)
    assert {"takeover_p99_s", "observer_catch_up_p99_s", "duplicated_execution", "flipped_splits"} < told.keys()
    assert told["bytes_per_op"] > 100


def test_words() -> None:
    code, text = asked("--seeds", "3", "--faults", "loss,crash")
    assert code == 0
    assert "divergences (must be 0)" in text


def test_a_failing_seed_is_named_with_the_command_that_replays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "flush", lambda self: None)
    code, text = asked("--seeds", "4..5", "--peers", "5..5", "--faults", "loss")
    assert code == 1
    assert "swarmtui simulate --seed 4 --peers 5..5 --faults loss --trace" in text
    assert "on disk" in text


def test_one_seed_with_its_trace() -> None:
    code, text = asked("--seed", "2", "--faults", "", "--trace")
    assert code == 0
    assert "says goal" in text
    assert "healed" in text
    code, again = asked("--seed", "2", "--faults", "", "--json")
    assert json.loads(again)["digest"] in text


def test_a_large_swarm_with_few_agents() -> None:
    code, text = asked("--seeds", "1", "--peers", "60", "--thin", "--json")
    assert code == 0, text
    assert json.loads(text)["peers"] == 60


@pytest.mark.parametrize(
    "wrong",
    [["--seeds", "9..1"], ["--faults", "meteors"], ["--trace"], ["--peers", "2"], ["--seeds", "many"], ["--thin"]],
)
def test_what_makes_no_sense(wrong: list[str]) -> None:
    assert asked(*wrong)[0] == 2
