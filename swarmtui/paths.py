"""Where things lie: the person's folders (XDG), and the files that are shipped with the program."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from swarmtui.files import expanded

APP = "swarmtui"


def config_dir() -> Path:
    """The folder of the person's own settings (it may not exist yet)."""
    return Path(platformdirs.user_config_dir(APP, appauthor=False))


def config_file() -> Path:
    """The config file that is read when none is named."""
    return config_dir() / "config.toml"


def prompts_dir() -> Path:
    """The folder where a person's own prompts replace the shipped ones, file by file."""
    return config_dir() / "prompts"


def data_dir(chosen: str | Path = "") -> Path:
    """The folder of journals, keys and the log: the chosen one, else the platform's."""
    return expanded(chosen).absolute() if chosen else Path(platformdirs.user_data_dir(APP, appauthor=False))


def models_dir() -> Path:
    """The folder where a person may put GGUF files."""
    return Path(platformdirs.user_data_dir(APP, appauthor=False)) / "models"


def cache_dir() -> Path:
    """The folder of what can be made again: copies of models that this machine reads faster, and what was measured."""
    return Path(platformdirs.user_cache_dir(APP, appauthor=False))


def measurements() -> Path:
    """The file of what was measured of models on this machine."""
    return cache_dir() / "measured.json"


def swift_models_dir() -> Path:
    """The folder of copies of models that this machine reads faster."""
    return cache_dir() / "models"


class Folders:
    """The places inside a data folder. Nothing is made by asking for them."""

    def __init__(self, chosen: str | Path = "") -> None:
        self.data = data_dir(chosen)
        self.keys = self.data / "keys"
        """One file per identity of this machine."""
        self.journals = self.data / "journals"
        self.meeting = self.data / "meeting"
        """Where programs that share the data folder tell each other their addresses."""
        self.log = self.data / "swarmtui.log"
        """What happens inside. The terminal is never logged to."""

    def journal(self, name: str) -> Path:
        """Return the journal file of a peer or swarm of ours."""
        return self.journals / f"{name}.db"

    def all_journals(self) -> list[Path]:
        """Return the journal files that exist, sorted by name."""
        return sorted(self.journals.glob("*.db")) if self.journals.is_dir() else []


def shipped(name: str) -> Path:
    """Return the path of a file or folder that is shipped with the program.

    In a wheel these lie inside the package; in a checkout they stand at its top, where people look for them.

    Raises:
        FileNotFoundError: it isn't there: the installation is damaged.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "shipped", package.parent):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"{name} is missing from this installation of swarmtui: install it again")


def stylesheet() -> Path:
    """The terminal's stylesheet."""
    return shipped("swarmtui.tcss")


def presets() -> list[str]:
    """Names of the shipped presets, sorted."""
    return sorted(file.stem for file in shipped("configs").glob("*.toml"))


def preset(name: str) -> Path:
    """Return the file of a shipped preset.

    Raises:
        KeyError: there is no such preset. (A name is never taken for a path.)
    """
    if name not in presets():
        raise KeyError(name)
    return shipped("configs") / f"{name}.toml"


def all_paths(data: str | Path = "") -> dict[str, Path]:
    """Every place that matters to a person, by what it is."""
    folders = Folders(data)
    return {
        "config file": config_file(),
        "own prompts": prompts_dir(),
        "own models": models_dir(),
        "data": folders.data,
        "keys": folders.keys,
        "journals": folders.journals,
        "log": folders.log,
        "cache": cache_dir(),
        "presets": shipped("configs"),
        "stylesheet": stylesheet(),
    }
