"""The commands: what they print, how they end, what they load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from swarmtui import __version__, cli, paths
from swarmtui.cli.root import COMMANDS
from swarmtui.peer.journal import Journal
from swarmtui.plan.envelope import Identity, seal
from swarmtui.plan.ops import Goal, Op


def run(*arguments: str) -> int:
    return cli.execute(arguments)


def kept(data: Path, *titles: str) -> list[Op]:
    """Put goals into a journal of the data folder, one hour apart."""
    me = Identity.from_seed(bytes(32))
    ops = [
        seal(me, b"", 0, (1_700_000_000_000 + 3_600_000 * i) << 16, Goal(title=title, nonce=bytes([i])))
        for i, title in enumerate(titles)
    ]
    journal = Journal(paths.Folders(data).journal("home"))
    journal.append(ops)
    journal.close()
    return ops


@pytest.mark.parametrize("name", [*COMMANDS, "config init", "config show", "config presets"])
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*name.split(), "--help") == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: swarmtui")
    if name not in ("config", "config presets"):
        assert "Example" in out
    if name not in ("config", "config presets", "simulate"):  # a simulation reads no settings: it's all in the seed
        for option in ("--config", "--preset", "--model", "--data-dir"):
            assert option in out


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_the_help_lists_the_commands_and_loads_nothing_heavy(flag: str) -> None:
    code = (
        "import sys\n"
        "from swarmtui import cli\n"
        f"assert cli.execute([{flag!r}]) == 0\n"
        "heavy = {'textual', 'libp2p', 'trio', 'llama_cpp', 'numpy', 'rich', 'msgspec'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    for name, (_, _, text) in COMMANDS.items():
        assert f"{name} " in done.stdout
        assert text in done.stdout


@pytest.mark.parametrize("module", ["swarmtui.cli.run", "swarmtui.cli.observe", "swarmtui.swarm", "swarmtui.doctor"])
def test_what_needs_no_screen_loads_no_textual(module: str) -> None:
    code = f"import sys, {module}; sys.exit(any(m in sys.modules for m in ('textual', 'llama_cpp')))"
    assert subprocess.run([sys.executable, "-c", code], timeout=150, check=False).returncode == 0


def test_the_screen_loads_no_llama() -> None:
    code = "import sys, swarmtui.ui.app, swarmtui.swarm; sys.exit('llama_cpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=150, check=False).returncode == 0


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"swarmtui {__version__}\n"


def test_without_a_terminal_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ((), ("Plan a party",), ("open", "run"), ("--model", "scripted", "Plan a party", "--seed", "3")):
        assert run(*arguments) == 1
        err = capsys.readouterr().err
        assert err.startswith("swarmtui: there is no terminal here")
        assert err.count("\n") == 1


def test_a_goal_given_alone_opens_the_screen_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str | None, str, int | None, bool]] = []

    class Swarm:
        def __init__(self, config: object, *, resume: bool) -> None:
            self.resume = resume

    def run_app(swarm: Swarm, config: object, goal: str | None) -> int:
        opened.append((goal, config.model, config.seed, swarm.resume))  # type: ignore[attr-defined]
        return 7

    monkeypatch.setattr("swarmtui.swarm.Swarm", Swarm)
    monkeypatch.setattr("swarmtui.ui.app.run_app", run_app)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert run("--model", "a", "Plan a party", "--model", "scripted", "--seed", "3") == 7
    assert run("open", "run", "--set", "seed=4") == 7
    assert run("--seed", "5") == 7
    assert opened == [("Plan a party", "scripted", 3, False), ("run", "auto", 4, False), (None, "auto", 5, True)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["obsrve"], "Did you mean 'observe'?"),
        (["run"], "Missing argument 'GOAL'"),
        (["run", " \n "], "The goal is empty"),
        (["run", "x" * 10_000], "10,000 characters"),
        (["run", "a", "--format", "pdf"], "'pdf' is not one of"),
        (["plans", "--nonsense"], "No such option"),
        (["paths", "--preset", "huge"], "there is no preset 'huge'"),
        (["paths", "--set", "policy.max_dept=2"], "did you mean policy.max_depth?"),
        (["paths", "--set", "seed"], "write it as KEY=VALUE"),
        (["observe", "--port", "70000"], "Error: --port: swarm.port: expected int <= 65535"),
        (["paths", "--set", "policy.max_depth=x"], "Error: --set policy.max_depth: policy.max_depth: expected int"),
        (["paths", "--set", "policy.max_dept=2"], "Error: --set policy.max_dept: unknown key"),
        (["paths", "--model", ""], "Error: --model: model: expected"),
        (["observe", "--swarm", "a b"], "Error: --swarm: swarm.name: expected"),
        (["observe", "--join", "example.org"], "expected addresses like /ip4/"),
        (["run", "a", "--seed", "-1"], "-1 is not in the range"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_right(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err


def test_a_wrong_config_file_ends_with_1_and_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[policy]\nmax_dept = 2\n")
    assert run("paths", "--config", str(file)) == 1
    assert capsys.readouterr().err == (
        f"swarmtui: {file}, line 2: unknown key policy.max_dept; did you mean policy.max_depth?\n"
    )
    assert run("paths", "--config", str(tmp_path / "none.toml")) == 1
    assert "there is no such file" in capsys.readouterr().err


def test_a_bug_is_one_line_unless_debug_is_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(data: object) -> dict[str, Path]:
        raise RuntimeError("oh\nno")

    monkeypatch.setattr("swarmtui.paths.all_paths", broken)
    assert run("paths") == 1
    err = capsys.readouterr().err
    assert "unexpected RuntimeError" in err
    assert "Traceback" not in err
    with pytest.raises(RuntimeError):
        run("paths", "--debug")


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(data: object) -> dict[str, Path]:
        raise KeyboardInterrupt

    monkeypatch.setattr("swarmtui.paths.all_paths", interrupted)
    assert run("paths") == 130


def test_paths_shows_every_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("paths", "--data-dir", str(tmp_path), "--json") == 0
    places = json.loads(capsys.readouterr().out)
    assert places["data"] == str(tmp_path)
    assert Path(places["stylesheet"]).is_file()
    assert Path(places["presets"], "tiny.toml").is_file()
    assert run("paths") == 0
    assert "(not there yet)" in capsys.readouterr().out


def test_config_init_writes_once_and_only_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("config", "init") == 0
    assert run("config", "show") == 0
    assert 'preset = "laptop"' in capsys.readouterr().out
    assert run("config", "init") == 1
    assert "exists" in capsys.readouterr().err
    assert run("config", "init", "--force", "--preset", "strict") == 0
    assert run("config", "show") == 0
    assert "scorers = 5" in capsys.readouterr().out
    paths.config_file().write_text("broken [")
    assert run("config", "init", "--force") == 0, "a broken file is no reason not to write a good one"
    assert run("config", "init", str(tmp_path / "nowhere" / "c.toml")) == 1
    assert "doesn't exist" in capsys.readouterr().err


def test_config_init_without_its_usual_folder_names_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(paths, "config_file", lambda: tmp_path / "file" / "swarmtui" / "config.toml")
    assert run("config", "init") == 1
    error = capsys.readouterr().err
    assert "(Not a directory)" in error
    assert "name a FILE" in error
    assert "Errno" not in error


def test_config_presets_says_what_each_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("config", "presets") == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["laptop", "strict", "tiny"]


@pytest.mark.parametrize("command", [("plans",), ("export", "last")])
@pytest.mark.parametrize(("name", "why"), [("file", "it's no folder"), ("x" * 300, "File name too long")])
def test_a_data_folder_that_is_none_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], name: str, why: str
) -> None:
    (tmp_path / "file").write_text("")
    assert run(*command, "--data-dir", str(tmp_path / name)) == 1
    error = capsys.readouterr().err
    assert why in error
    assert "unexpected" not in error


def test_plans_lists_what_the_journals_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plans", "--data-dir", str(tmp_path)) == 0
    assert "no plans yet" in capsys.readouterr().err
    ops = kept(tmp_path, "Plan a party", "A garden \x1b[31m[/foo]")
    assert run("plans", "--data-dir", str(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(ops[0].id.hex()[:8])
    assert lines[1].endswith("A garden [/foo]")
    assert "\x1b" not in lines[1]
    assert run("plans", "--json", "--data-dir", str(tmp_path)) == 0
    facts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [fact["id"] for fact in facts] == [op.id.hex() for op in ops]
    assert facts[0]["state"] == "unfinished"


def test_plans_lists_more_than_a_peer_would_take_of_one_author(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarmtui.plan.shelf.weight", lambda op: 1024 * 1024)
    kept(tmp_path, *(f"Plan party {number}" for number in range(100)))
    assert run("plans", "--data-dir", str(tmp_path)) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 100
    assert not told.err
    monkeypatch.setattr("swarmtui.plan.shelf.weight", lambda op: 8 * 1024 * 1024)
    assert run("plans", "--data-dir", str(tmp_path)) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 64
    assert "36 ops were left out (the author's budget is used up)" in told.err


def test_export_finds_a_plan_by_its_id_its_title_or_as_the_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ops = kept(tmp_path, "Plan a party", "Plan a garden")
    data = ("--data-dir", str(tmp_path))
    for word, title in ((ops[0].id.hex()[:10], "party"), ("PARTY", "party"), ("last", "garden"), ("garden", "garden")):
        assert run("export", word, *data) == 0
        assert capsys.readouterr().out.startswith(f"# Plan a {title}\n")
    assert run("export", "plan a", *data) == 1
    assert "2 plans fit" in capsys.readouterr().err
    assert run("export", "rocket", *data) == 1
    assert "no plan here is called" in capsys.readouterr().err


def test_export_never_writes_over_a_file_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(tmp_path / "data", "Plan a party")
    file = tmp_path / "plan.json"
    data = ("--data-dir", str(tmp_path / "data"))
    assert run("export", "last", str(file), *data) == 0
    assert json.loads(file.read_text())["title"] == "Plan a party"
    file.write_text("mine")
    assert run("export", "last", str(file), *data) == 1
    assert "exists" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert run("export", "last", str(file), "--force", "--format", "md", *data) == 0
    assert file.read_text().startswith("# Plan a party")
    assert run("export", "last", str(tmp_path), *data) == 1
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["plan.json"], "no parts are left behind"


def test_a_damaged_journal_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = paths.Folders(tmp_path).journal("home")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not a database, but long enough to look like one" * 100)
    assert run("plans", "--data-dir", str(tmp_path)) == 0
    assert "damaged" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m swarmtui config show | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=150, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_a_full_disk_is_told_as_one() -> None:
    command = f"{sys.executable} -m swarmtui config show >/dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=150, check=False)
    assert (done.returncode, done.stderr) == (1, "swarmtui: the output can't be written: No space left on device\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(tmp_path: Path, closed: str) -> None:
    file = tmp_path / "plan.md"
    command = f"{sys.executable} -m swarmtui run x --model scripted --preset tiny --no-mdns --export {file} {closed}"
    done = subprocess.run(
        f"{command} --data-dir {tmp_path}", shell=True, capture_output=True, text=True, timeout=150, check=False
    )
    assert (done.returncode, "unexpected" in done.stderr) == (0, False)
    assert file.read_text().startswith("# x\n")


def test_completion_knows_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from swarmtui.cli import main; main()"],
        env={"_SWARMTUI_COMPLETE": "bash_complete", "COMP_WORDS": "swarmtui ob", "COMP_CWORD": "1", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert "observe" in done.stdout
