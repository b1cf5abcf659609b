"""Where a setting's value comes from.

A value is taken from the first of: flag, environment (`SWARMTUI_SWARM_PORT` is `port` in `[swarm]`), config file,
preset, default. :func:`template` writes them all as a commented TOML file, from their declarations in settings.py.
"""

from __future__ import annotations

import difflib
import ipaddress
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
import tomli_w

from swarmtui import paths, tomlfile
from swarmtui.files import reason_of
from swarmtui.plan.ops import QUORUMS
from swarmtui.settings import (
    DEFAULT_KEY_VARIABLE,
    DEFAULT_PRESET,
    ENV_PREFIX,
    SETTINGS,
    AgentsConfig,
    Config,
    ConfigError,
    LlmConfig,
    PolicyConfig,
    RunConfig,
    Setting,
    SwarmConfig,
)

__all__ = [
    "DEFAULT_PRESET",
    "SETTINGS",
    "AgentsConfig",
    "Config",
    "ConfigError",
    "LlmConfig",
    "PolicyConfig",
    "RunConfig",
    "SwarmConfig",
    "as_toml",
    "load",
    "parse",
    "template",
    "with_model",
]

NO_SETTINGS = {"SWARMTUI_CONFIG", "SWARMTUI_DEBUG", DEFAULT_KEY_VARIABLE}
"""Variables with our prefix that name no setting."""


ROLE_MODELS = ("agents.decomposer_model", "agents.scorer_model", "agents.executor_model")


class _Found(msgspec.Struct, frozen=True):
    value: Any
    origin: str
    """Where it stands, for messages: a file and line, a variable, a flag."""


def load(
    flags: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    file: Path | None = None,
    preset: str | None = None,
) -> Config:
    """Put the settings together.

    Args:
        flags: values by dotted key; None values are left out.
        env: the environment (only `SWARMTUI_…` is looked at).
        file: the config file; None: the usual one, if it exists.
        preset: a preset's name, which goes before what environment and file say.

    Raises:
        ConfigError: a key is unknown, a value is wrong, a file can't be read.
    """
    given = {key: _Found(value, _flag(key)) for key, value in (flags or {}).items() if value is not None}
    if preset is not None:
        given["preset"] = _Found(preset, "--preset")
    for key, found in given.items():
        if key not in SETTINGS:
            raise ConfigError(f"{found.origin}: {_unknown(key)}")
    from_env = _from_env(env or {})
    file = file or _usual_file()
    from_file = _from_file(file) if file else {}
    layers = [from_file, from_env, given]
    name = next((layer["preset"] for layer in reversed(layers) if "preset" in layer), _Found(DEFAULT_PRESET, ""))
    merged = _from_preset(name)
    for layer in layers:
        if "model" in layer:
            # Who says --model means all agents, whatever a file says of some.
            for key in ROLE_MODELS:
                merged.pop(key, None)
        merged.update(layer)
    return _build(merged)


def _flag(key: str) -> str:
    """Return what a person types to set this."""
    section, _, name = key.rpartition(".")
    if section == "swarm" and name in ("name", "listen", "port", "join", "mdns"):
        return "--swarm" if name == "name" else f"--{name}"
    return (
        f"--set {key}"
        if section or key not in ("model", "preset", "seed", "data_dir")
        else f"--{key.replace('_', '-')}"
    )


def _usual_file() -> Path | None:
    """Return the usual config file, if there is one."""
    file = paths.config_file()
    try:
        return file if file.exists() else None
    except OSError as error:  # the folder is somebody else's
        raise ConfigError(
            f"{file} can't be read ({reason_of(error)}): check its rights or HOME, or use --config"
        ) from None


def _from_env(env: Mapping[str, str]) -> dict[str, _Found]:
    names = {setting.env: setting for setting in SETTINGS.values() if setting.key != "keys"}
    found = {}
    for name, text in env.items():
        if not name.startswith(ENV_PREFIX) or name in NO_SETTINGS:
            continue
        if name not in names:
            raise ConfigError(f"environment variable {name}: names no setting{_nearest(name, names)}")
        found[names[name].key] = _Found(parse(names[name], text, name), name)
    return found


def parse(setting: Setting, text: str, name: str) -> Any:
    """Turn a variable's text into a value of the setting's kind, as far as its form tells.

    Args:
        setting: which one.
        text: "true", "7", "write,code" …
        name: where it stands, for the message.

    Raises:
        ConfigError: it's neither true nor false.
    """
    base = get_args(setting.kind)[0]
    if base is bool:
        words = {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }
        if text.strip().lower() not in words:
            raise ConfigError(f"{name}: expected true or false, got {text!r}")
        return words[text.strip().lower()]
    if get_origin(base) is tuple:
        listed = text.strip().removeprefix("[").removesuffix("]")  # as in the file, too
        parts = [part.strip().strip("\"'") for part in listed.split(",") if part.strip()]
        return [int(p) if p.isdecimal() else p for p in parts] if get_args(base)[0] is int else parts
    if int in {get_args(part)[0] if get_args(part) else part for part in (base, *get_args(base))}:
        try:
            return int(text)
        except ValueError:
            return text
    return text


def _from_preset(name: _Found) -> dict[str, _Found]:
    known = paths.presets()
    if name.value not in known:
        where = f"{name.origin}: " if name.origin else ""
        raise ConfigError(f"{where}there is no preset {name.value!r}; there are {', '.join(known)}")
    return {**_from_file(paths.preset(name.value)), "preset": name}


def _from_file(file: Path) -> dict[str, _Found]:
    try:
        tables = tomlfile.read(file)
        lines = tomlfile.lines(file)
    except tomlfile.TomlError as error:
        raise ConfigError(str(error)) from None
    keys = tables.pop("keys", None)
    flat = tomlfile.flatten(tables)
    if keys is not None:
        flat["keys"] = keys
    found = {}
    for key, value in flat.items():
        line = next((lines[k] for k in (key, key.split(".")[0]) if k in lines), 0)
        origin = f"{file}, line {line}" if line else str(file)
        if key not in SETTINGS:
            if any(known.startswith(f"{key}.") for known in SETTINGS):
                if value == {}:
                    continue  # an empty section
                raise ConfigError(f"{origin}: {key} is a section: write [{key}]")
            raise ConfigError(f"{origin}: {_unknown(key)}")
        found[key] = _Found(value, origin)
    return found


def _unknown(key: str) -> str:
    return f"unknown key {key}{_nearest(key, SETTINGS)}"


def _nearest(word: str, known: Iterable[str]) -> str:
    """Return '; did you mean …?', or nothing when nothing is near."""
    candidates = list(known)
    last = word.rsplit(".", 1)[-1]
    near = [c for c in candidates if c.rsplit(".", 1)[-1] == last]  # the right word in the wrong section
    near = near or difflib.get_close_matches(word, candidates, 1, 0.6)
    near = near or [c for c in candidates if difflib.get_close_matches(last, [c.rsplit(".", 1)[-1]], 1, 0.8)]
    return f"; did you mean {near[0]}?" if near else ""


def _build(found: Mapping[str, _Found]) -> Config:
    """Check every value by itself, so that a mistake names its key, then the whole."""
    tables: dict[str, Any] = {}
    for key, item in found.items():
        try:
            value = msgspec.convert(item.value, SETTINGS[key].kind)
            _check(key, value)
        except (msgspec.ValidationError, ValueError) as error:
            raise ConfigError(f"{item.origin}: {key}: {_plainly(error, key, item.value)}") from None
        section, _, name = key.rpartition(".")
        (tables.setdefault(section, {}) if section else tables)[name] = value
    config = msgspec.convert(tables, Config)
    try:
        config.policy.to_policy(config.agents.scorers)
    except ConfigError as error:
        where = next((found[k].origin for k in ("policy.fan_out", "policy.quorum") if k in found), "policy")
        raise ConfigError(f"{where}: {error}") from None
    return config


def _plainly(error: Exception, key: str, value: Any) -> str:
    """Return a mistake in words: what was expected, what was found."""
    base = get_args(SETTINGS[key].kind)[0]
    if get_origin(base) is Literal:
        choices = [str(choice) for choice in get_args(base)]
        return f"expected one of {', '.join(choices)}, got {value!r}{_nearest(str(value), choices)}"
    if not isinstance(error, msgspec.ValidationError):
        return str(error)
    if isinstance(value, dict):
        name, wrong = next(each for each in value.items() if not isinstance(each[1], str))
        return f"{name}: expected a text, got {wrong!r}"
    text = str(error).replace("`", "").replace("Expected", "expected")
    return text if ", got" in text else f"{text}, got {value!r}"


def _check(key: str, value: Any) -> None:
    """Check what a type can't say.

    Raises:
        ValueError: with what would be right.
    """
    if key == "policy.quorum":
        if isinstance(value, str) and value not in QUORUMS:
            raise ValueError(
                f"expected a number or one of {', '.join(QUORUMS)}, got {value!r}{_nearest(value, QUORUMS)}"
            )
        if isinstance(value, int) and not 1 <= value <= 1000:
            raise ValueError(f"expected 1 to 1000, got {value}")
    elif key == "swarm.listen" and value not in ("local", "lan"):
        try:
            ipaddress.ip_address(value)
        except ValueError:
            raise ValueError(f'expected "local", "lan" or an IP address, got {value!r}') from None
    elif key in ("agents.skills", "policy.skills"):
        if not value or any(not 1 <= len(skill) <= 40 for skill in value):
            raise ValueError("expected at least one skill, each of 1 to 40 characters")
    elif key == "swarm.join" and (bad := next((a for a in value if not a.startswith("/")), None)) is not None:
        raise ValueError(f"expected addresses like /ip4/192.0.2.7/tcp/4001/p2p/12D3Koo…, got {bad!r}")


def with_model(config: Config, spec: str) -> Config:
    """Return settings in which all agents use this model."""
    agents = msgspec.structs.replace(config.agents, **{key.partition(".")[2]: "" for key in ROLE_MODELS})
    return msgspec.structs.replace(config, model=spec, agents=agents)


def template(preset: str = DEFAULT_PRESET) -> str:
    """Return a config file that names every setting, what it means, and its value in a preset (commented out).

    Raises:
        ConfigError: there is no such preset.
    """
    config = _build(_from_preset(_Found(preset, "")))
    out = [
        "# swarmtui's settings. A line that begins with '# name =' shows the value: take the '# ' away to set it.",
        "# Before this file go: flags, then environment variables (SWARMTUI_SWARM_PORT is port in [swarm]).",
        "# After it come: the preset, then the defaults.",
    ]
    section = ""
    for setting in SETTINGS.values():
        table, _, name = setting.key.rpartition(".")
        if setting.key == "keys":
            table = "keys"
        if table != section:
            section = table
            doc = "" if table == "keys" else (type(getattr(config, table)).__doc__ or "").strip()
            out += ["", "", f"[{table}]", *([f"# {doc}"] if doc else [])]
        out += ["", *textwrap.wrap(setting.doc, 110, initial_indent="# ", subsequent_indent="# ")]
        if setting.key == "keys":
            continue
        value: Any = config
        for part in setting.key.split("."):
            value = getattr(value, part)
        line = _toml_line(name, value)
        out.append(line if setting.key == "preset" else f"# {line}")
    return "\n".join(out) + "\n"


def _toml_line(name: str, value: Any) -> str:
    if value is None:  # TOML has no word for it: show what could stand here
        return f"{name} = 7"
    if isinstance(value, tuple):  # on one line: tomli-w writes one item a line
        return f"{name} = [{', '.join(_toml_line('x', item)[4:] for item in value)}]"
    return tomli_w.dumps({name: value}).strip()


def as_toml(config: Config) -> str:
    """Return settings as TOML that can be read again, but for a secret, which is hidden."""
    tables = msgspec.to_builtins(config)
    tables["swarm"]["secret"] = "…" if config.swarm.secret else ""
    return tomli_w.dumps({key: value for key, value in tables.items() if value is not None})
