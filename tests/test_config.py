"""Settings: where they come from, and what is said of mistakes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from swarmtui import paths
from swarmtui.config import SETTINGS, Config, ConfigError, PolicyConfig, as_toml, load, template
from swarmtui.plan.ops import Policy


def written(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_flag_goes_before_the_environment_the_file_the_preset_and_the_default(tmp_path: Path) -> None:
    file = written(tmp_path, "[policy]\nmax_depth = 4\nrivals = 4\nrounds = 4\n")
    env = {"SWARMTUI_POLICY_MAX_DEPTH": "5", "SWARMTUI_POLICY_RIVALS": "5"}
    policy = load({"policy.max_depth": 6}, env, file, "tiny").policy
    assert (policy.max_depth, policy.rivals, policy.rounds) == (6, 5, 4)
    assert policy.fan_out == (2, 4), "the preset's"
    assert policy.attempts == 3, "the default"


def test_the_usual_file_is_read_when_it_exists() -> None:
    assert load().preset == "laptop"
    paths.config_file().parent.mkdir(parents=True)
    paths.config_file().write_text('preset = "strict"\n')
    assert load().agents.scorers == 5
    assert load(preset="tiny").agents.scorers == 3


def test_every_preset_makes_a_policy() -> None:
    assert paths.presets() == ["laptop", "strict", "tiny"]
    for name in paths.presets():
        config = load(preset=name)
        policy = config.policy.to_policy(config.agents.scorers)
        assert 1 <= policy.need <= policy.of == config.agents.scorers
        assert config.preset == name
    laptop = load()
    assert (laptop.agents.decomposers, laptop.agents.scorers, laptop.agents.executors) == (2, 3, 2)


@pytest.mark.parametrize(
    ("quorum", "scorers", "need", "of"),
    [
        ("majority", 3, 2, 3),
        ("majority", 4, 3, 4),
        ("two-thirds", 3, 2, 3),
        ("two-thirds", 4, 3, 4),
        ("all", 5, 5, 5),
        ("all", 0, 1, 1),
        (4, 2, 4, 4),
        (1, 7, 1, 7),
    ],
)
def test_a_quorum_becomes_a_number_of_a_number(quorum: int | str, scorers: int, need: int, of: int) -> None:
    policy = PolicyConfig(quorum=quorum).to_policy(scorers)
    assert (policy.need, policy.of) == (need, of)


def test_the_policys_defaults_are_the_protocols() -> None:
    ours, theirs = PolicyConfig().to_policy(3), Policy()
    assert ours == theirs
    named = set(PolicyConfig.__struct_fields__) - {"quorum"} | {"need", "of", "scorers"}
    assert named == set(Policy.__struct_fields__)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[policy]\n\nmax_dept = 2\n", "line 3: unknown key policy.max_dept; did you mean policy.max_depth?"),
        ("sed = 2\n", "line 1: unknown key sed; did you mean seed?"),
        ("port = 2\n", "line 1: unknown key port; did you mean swarm.port?"),
        ("[swarn]\nport = 2\n", "line 2: unknown key swarn.port; did you mean swarm.port?"),
        ("[zzz]\nqqq = 2\n", "line 2: unknown key zzz.qqq"),
        ('[swarm]\nport = "x"\n', "line 2: swarm.port: expected int, got str"),
        ("[swarm]\n# port\nport = 70000\n", "line 3: swarm.port: expected int <= 65535, got 70000"),
        ("swarm = 3\n", "line 1: swarm is a section: write [swarm]"),
        ("swarm.port = true\n", "line 1: swarm.port: expected int, got bool"),
        ('[policy]\nquorum = "majorty"\n', "got 'majorty'; did you mean majority?"),
        ("[policy]\nquorum = 0\n", "line 2: policy.quorum: expected 1 to 1000, got 0"),
        ('[policy]\nsynthesis = "rot"\n', "expected one of none, root, all, got 'rot'; did you mean root?"),
        ("[policy]\nfan_out = [5, 3]\n", "line 2: policy.fan_out 5-3 isn't within 2-16"),
        ('[swarm]\nlisten = "wlan"\n', 'expected "local", "lan" or an IP address, got \'wlan\''),
        ('[swarm]\nname = "my home"\n', "line 2: swarm.name:"),
        ('[swarm]\njoin = ["192.0.2.7:4001"]\n', "expected addresses like /ip4/"),
        ("[agents]\nskills = []\n", "expected at least one skill"),
        ('preset = "large"\n', "line 1: there is no preset 'large'; there are laptop, strict, tiny"),
        ("[keys]\nquit = 3\n", "keys: quit: expected a text, got 3"),
        ("seed = 1\nseed = 2\n", "line 2"),
        ("[", "at end of document"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_would_be_right(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as failure:
        load(file=file)
    assert said in str(failure.value)
    assert str(file) in str(failure.value)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"SWARMTUI_SWARM_PROT": "1"}, "SWARMTUI_SWARM_PROT: names no setting; did you mean SWARMTUI_SWARM_PORT?"),
        ({"SWARMTUI_SWARM_PORT": "x"}, "SWARMTUI_SWARM_PORT: swarm.port: expected int, got str"),
        ({"SWARMTUI_SWARM_MDNS": "maybe"}, "SWARMTUI_SWARM_MDNS: expected true or false, got 'maybe'"),
    ],
)
def test_a_mistake_in_the_environment_is_named(env: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as failure:
        load(env=env)
    assert said in str(failure.value)


def test_the_environment_can_set_every_kind_of_value() -> None:
    env = {
        "HOME": "/nowhere",
        "SWARMTUI_SEED": "7",
        "SWARMTUI_MODEL": "scripted",
        "SWARMTUI_SWARM_MDNS": "off",
        "SWARMTUI_SWARM_JOIN": "/ip4/127.0.0.1/tcp/1, /ip4/127.0.0.1/tcp/2",
        "SWARMTUI_POLICY_QUORUM": "all",
        "SWARMTUI_POLICY_FAN_OUT": "3,4",
        "SWARMTUI_POLICY_SKILLS": '["write", "code"]',
        "SWARMTUI_LLM_GPU_LAYERS": "-1",
        "SWARMTUI_DEBUG": "1",
    }
    config = load(env=env)
    assert (config.seed, config.model, config.swarm.mdns) == (7, "scripted", False)
    assert config.swarm.join == ("/ip4/127.0.0.1/tcp/1", "/ip4/127.0.0.1/tcp/2")
    assert (config.policy.quorum, config.policy.fan_out, config.llm.gpu_layers) == ("all", (3, 4), -1)
    assert config.policy.skills == ("write", "code")
    assert load(env={"SWARMTUI_POLICY_QUORUM": "3"}).policy.quorum == 3


@pytest.mark.parametrize("preset", ["laptop", "strict", "tiny"])
def test_the_written_file_says_everything_and_means_the_preset(tmp_path: Path, preset: str) -> None:
    text = template(preset)
    file = written(tmp_path, text)
    assert load(file=file) == load(preset=preset)
    for setting in SETTINGS.values():
        assert setting.doc.split()[0] in text
        assert setting.key == "keys" or f"{setting.key.rsplit('.', 1)[-1]} = " in text


def test_the_written_file_can_be_uncommented_line_by_line(tmp_path: Path) -> None:
    lines = [line[2:] if line.startswith("# ") and " = " in line and "`" not in line else line
             for line in template().splitlines()]  # fmt: skip
    lines = [line for line in lines if not line.startswith("settings.") and "begins with" not in line]
    config = load(file=written(tmp_path, "\n".join(lines)))
    assert config == msgspec.structs.replace(load(), seed=7)


def test_what_is_shown_can_be_read_again_but_for_the_secret(tmp_path: Path) -> None:
    config = load({"swarm.secret": "hush", "seed": 3, "keys": {"quit": "ctrl+x"}})
    text = as_toml(config)
    assert "hush" not in text
    assert "hush" not in repr(config)
    again: dict[str, Any] = tomllib.loads(text)
    assert again["seed"] == 3
    assert load(file=written(tmp_path, text.replace("…", "hush"))) == config


def test_files_that_cannot_be_read_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        load(file=tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'model = "\xff"\n')
    with pytest.raises(ConfigError, match="isn't UTF-8"):
        load(file=tmp_path / "latin.toml")
    with pytest.raises(ConfigError, match=str(tmp_path)):
        load(file=tmp_path)


def test_a_presets_name_is_never_a_path() -> None:
    with pytest.raises(KeyError):
        paths.preset("../pyproject")
    with pytest.raises(ConfigError, match="there is no preset"):
        load(preset="../configs/laptop")


def test_listening_is_local_unless_asked() -> None:
    assert Config().swarm.listen_addresses() == ["127.0.0.1"]
    assert load({"swarm.listen": "lan"}).swarm.listen_addresses() == ["0.0.0.0"]
    assert load({"swarm.listen": "::1"}).swarm.listen_addresses() == ["::1"]


def test_a_config_folder_that_is_somebody_elses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", denied)
    with pytest.raises(ConfigError, match=r"config.toml can't be read \(Permission denied\)"):
        load({}, {})


def test_a_line_break_is_no_part_of_a_swarms_name() -> None:
    with pytest.raises(ConfigError, match=r"swarm\.name"):
        load({"swarm.name": "home\n"}, {})
