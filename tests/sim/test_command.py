"""`swarmtui simulate`."""

from __future__ import annotations

import io
import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from swarmtui.cli.failure import EXIT_INTERRUPTED
from swarmtui.cli.progress import Download, Progress, lasting
from swarmtui.cli.root import cli
from swarmtui.peer.store import Store
from swarmtui.sim import figures
from swarmtui.sim.dice import scenario
from swarmtui.sim.judgement import Outcome
from swarmtui.sim.run import run
from swarmtui.sim.trace import Opened


def asked(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["simulate", *arguments], standalone_mode=False)
    code = done.return_value if done.exception is None else 2
    return int(code or 0), done.output + str(done.exception or "")


def figures_in(text: str) -> Any:
    """The last line. On a slow machine others come before it, on stderr, that say how long it will take."""
    return json.loads(text.splitlines()[-1])


def test_figures() -> None:
    code, text = asked("--seeds", "0..5", "--peers", "5..6", "--json")
    told = figures_in(text)
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
    assert "swarmtui simulate --seed 4 --peers 5..5 --faults loss --story" in text
    assert "on disk" in text


def test_one_seed_with_its_trace() -> None:
    code, text = asked("--seed", "2", "--faults", "", "--trace")
    assert code == 0
    assert "says goal" in text
    assert "healed" in text
    code, again = asked("--seed", "2", "--faults", "", "--json")
    assert figures_in(again)["digest"] in text


def test_a_large_swarm_with_few_agents() -> None:
    code, text = asked("--seeds", "1", "--peers", "60", "--thin", "--json")
    assert code == 0, text
    assert figures_in(text)["peers"] == 60


def test_the_story_of_a_seed() -> None:
    code, text = asked("--seed", "17", "--story")
    assert code == 0, text
    lines = [line.strip() for line in text.splitlines()]
    for part in (
        "3 of 4 scorers, these alone",
        "tricks every 6 s: backdate, future",
        "operator 0 gives the goal “Plan trip 1”",
        "! operator 0 is killed for 0.09 s (at its goal no. 1, published, 5.8 s later)",
        "hostile 5 says 150 times: vote",
        "! the operator decides something: veto",
        "operator 0 vetoes ",
        "dated 3600 s ahead",
        "→ “Plan trip 1” is done",
        "healed",
    ):
        assert any(part in line for line in lines), part
    assert "\x1b" not in text
    _, again = asked("--seed", "17", "--json")
    assert figures_in(again)["digest"] in text, "telling changes nothing"


def test_a_long_row_of_seeds_goes_on_where_it_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "runs.jsonl"
    asked_for = ("--seeds", "0..3", "--peers", "5..6", "--json", "--log", str(log))
    ran: list[int] = []
    real = figures.one

    def one(seed: int, *arguments: Any, **named: Any) -> Outcome:
        ran.append(seed)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return real(seed, *arguments, **named)

    monkeypatch.setattr(figures, "one", one)
    code, text = asked(*asked_for)
    assert code == EXIT_INTERRUPTED
    assert "interrupted after 2 of 4 seeds" in text
    assert figures_in(text)["runs"] == 2
    with log.open("ab") as file:
        file.write(b'{"seed":2,"half a li')
    code, text = asked(*asked_for)
    assert code == 0
    assert ran == [0, 1, 2, 2, 3]
    told = figures_in(text)
    assert told["runs"] == 4
    assert told.keys() == figures_in(asked("--seeds", "0..3", "--peers", "5..6", "--json")[1]).keys()
    assert len(log.read_bytes().splitlines()) == 5


def test_a_log_of_something_else_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "runs.jsonl"
    for there, reason in ((b"Dear diary,\n", "something else"), (b'{"peers":[5,7]}\n', "other --peers")):
        log.write_bytes(there)
        code, text = asked("--seeds", "0..1", "--peers", "5..6", "--log", str(log))
        assert code == 2
        assert reason in text
        assert "name another file" in text
        assert log.read_bytes() == there


def test_an_interruption_is_an_interruption_however_deep_it_came() -> None:
    class Tired:
        def note(self, at: float, member: int, what: str, detail: str) -> None:
            if what == "healed":
                raise KeyboardInterrupt

        def frame(self, at: float, member: int, data: bytes, opened: Opened) -> None:
            pass

        def fault(self, at: float, what: object) -> None:
            pass

    with pytest.raises(KeyboardInterrupt):
        run(scenario(3, (5, 5), ()), Tired())


def test_workers_end_with_whoever_asked() -> None:
    before = set(multiprocessing.active_children())
    outcomes = figures.many(range(200), (5, 5), (), jobs=2)
    assert next(outcomes).good
    workers = set(multiprocessing.active_children()) - before
    assert len(workers) == 2
    outcomes.close()
    assert not any(worker.is_alive() for worker in workers)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--seeds", "9..1"],
        ["--faults", "meteors"],
        ["--trace"],
        ["--story"],
        ["--story", "--trace", "--seed", "1"],
        ["--seed", "1", "--log", "x"],
        ["--peers", "2"],
        ["--seeds", "many"],
        ["--thin"],
    ],
)
def test_what_makes_no_sense(wrong: list[str]) -> None:
    assert asked(*wrong)[0] == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_how_far_it_is_is_one_line_on_a_terminal_and_few_lines_in_a_file() -> None:
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Progress(1000, "seeds", stream)
        for number in range(3):
            progress.step("1 wrong" if number else "")
        progress.clear()
    assert "\n" not in terminal.getvalue()
    lines = terminal.getvalue().split("\r")
    assert [line.split(" · ")[0] for line in lines[1:4]] == [f"{n} of 1,000 seeds" for n in (1, 2, 3)]
    assert " to go" in lines[3]
    assert "1 wrong" in lines[3]
    assert "\r" not in file.getvalue()
    assert [lasting(seconds) for seconds in (7.4, 200, 7_300)] == ["7 s", "3 min", "2 h 02 min"]


def test_how_far_a_download_is_is_told_at_once_and_then_now_and_then() -> None:
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        download = Download(stream)
        for done in range(3):
            download("getting", done * 10**6, 2 * 10**9)
        download("checking", 10**9, 2 * 10**9)
        download.clear()
    told = ["getting 0.0 GB of 2.0 GB · 0 %", "checking 1.0 GB of 2.0 GB · 50 %"]
    assert file.getvalue().splitlines() == told
    shown = [line.removesuffix("\x1b[K") for line in terminal.getvalue().split("\r")]
    assert shown[1] == told[0] and shown[-2:] == [told[1], ""], "cleared at the end"
