"""Rules of the house that no other tool checks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "swarmtui").rglob("*.py"))
PURE = [path for path in SOURCES if path.relative_to(ROOT).parts[1] in ("plan", "peer", "agents")]
CHANCE = {"random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform", "gauss", "seed"}


def calls(path: Path) -> set[str]:
    """Dotted names of what a file calls on a module: time.time, random.choice …"""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        f"{node.func.value.id}.{node.func.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    }


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(ROOT / "swarmtui")))
def test_no_clock_and_no_chance_of_their_own(path: Path) -> None:
    forbidden = {"time.time", "time.monotonic", "time.sleep", "datetime.now", "datetime.utcnow"}
    forbidden |= {f"random.{name}" for name in CHANCE}
    if path.name != "gossip.py":  # libp2p wants sequence numbers that grow over restarts
        forbidden.add("time.time_ns")
    assert not calls(path) & forbidden


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "swarmtui")))
def test_typed_paths_are_expanded_in_one_place(path: Path) -> None:
    """Path.expanduser raises RuntimeError for `~nobody`, which nobody who calls it thinks of."""
    assert ".expanduser(" not in path.read_text(encoding="utf-8").replace("os.path.expanduser(", "")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "swarmtui")))
def test_files_are_short_enough_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 420


def test_the_constraints_name_versions_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+]+", line) for line in pins)


def test_every_preset_explains_itself() -> None:
    for file in (ROOT / "configs").glob("*.toml"):
        assert file.read_text(encoding="utf-8").startswith(f"# {file.stem}: ")
