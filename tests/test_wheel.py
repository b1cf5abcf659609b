"""The wheel works from anywhere: what it needs at run time is inside."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parent.parent


def call(*command: str, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    (made,) = folder.glob("swarmtui-*-py3-none-any.whl")
    return made


def test_everything_is_inside_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    shipped = {name.removeprefix("swarmtui/shipped/") for name in names if name.startswith("swarmtui/shipped/")}
    assert shipped == {"swarmtui.tcss", "configs/laptop.toml", "configs/strict.toml", "configs/tiny.toml"}
    prompts = {path.name for path in (ROOT / "swarmtui" / "agents" / "prompts").iterdir() if path.is_file()}
    assert prompts <= {name.rsplit("/", 1)[-1] for name in names if "agents/prompts/" in name}
    assert "swarmtui/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(name.startswith(("swarmtui/", "swarmtui-")) for name in names)
    assert not any("__pycache__" in name for name in names)


def test_it_runs_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    place, home = tmp_path / "place", tmp_path / "home"
    call(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--no-index", "--target", str(place), str(wheel)),
        cwd=tmp_path,
    )
    env = {"PYTHONPATH": str(place), "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home)}
    script = [sys.executable, str(place / "bin" / "swarmtui")]
    assert call(*script, "--version", cwd=tmp_path, **env).startswith("swarmtui ")
    call(*script, "config", "init", cwd=tmp_path, **env)
    assert "scorers = 3" in (home / "swarmtui" / "config.toml").read_text()
    shown = call(*script, "paths", cwd=tmp_path, **env)
    assert str(place / "swarmtui" / "shipped" / "swarmtui.tcss") in shown
    code = "from swarmtui.ui.app import SwarmApp; from swarmtui import paths; print(paths.stylesheet().read_text()[:2])"
    assert call(sys.executable, "-c", code, cwd=tmp_path, **env).strip() == "/*"
    call(
        *(*script, "run", "Plan a party", "--model", "scripted", "--seed", "7", "--preset", "tiny"),
        *("--no-mdns", "--data-dir", str(tmp_path / "data"), "--export", "plan.md"),
        cwd=tmp_path,
        **env,
    )
    assert (tmp_path / "plan.md").read_text().startswith("# Plan a party")
