"""The bundled model's file and the probe that `doctor` runs."""

import sys
from types import SimpleNamespace

import pytest

from swarmtui.llm import models, process, tuning, wire
from swarmtui.llm.probe import probe, probe_file

pytestmark = pytest.mark.model


def test_auto_is_the_bundled_model_found_without_importing_its_package(bundled):
    sys.modules.pop(models.BUNDLED_PACKAGE, None)
    chosen = models.choose("auto")
    assert chosen.path == bundled
    assert chosen.template
    assert chosen.context == 8192
    assert models.BUNDLED_PACKAGE not in sys.modules
    assert "llama_cpp" not in sys.modules


def test_the_probe_measures_and_remembers(bundled, tmp_path):
    numbers = SimpleNamespace(threads=0, context=0, slots=1, gpu_layers=0)
    notebook = tuning.Notebook(tmp_path / "measured.json")
    report = probe(SimpleNamespace(model="auto", models_dir=None, llm=numbers), notebook)
    assert report.ok, report
    assert report.width == 1
    assert report.read_per_second > 0
    kept = notebook.read(tuning.key(bundled, numbers))
    # On a machine that is as good as standing still nothing is measured, nor kept.
    assert kept == (tuning.Measured(report.read_per_second, report.speeds) if report.speeds else None)


@pytest.mark.parametrize(
    ("script", "text", "remedy"),
    [
        ("kill -ILL $$", "SIGILL", "GGML_NATIVE=OFF"),
        ("kill -KILL $$", "SIGKILL", "memory"),
        ("kill -SEGV $$", "SIGSEGV", "update"),
        ("echo no such thing >&2; exit 3", "exit code 3: no such thing", "log"),
        ("echo \"ModuleNotFoundError: No module named 'llama_cpp'\" >&2; exit 1", "isn't installed", "pip install"),
        ("echo this is no message, sorry", "ended with exit code 0", "log"),
    ],
)
def test_the_probe_tells_how_the_engine_died(script, text, remedy):
    report = probe_file(wire.Open("any"), command=["sh", "-c", script])
    assert not report.ok
    assert text in report.text
    assert remedy in report.remedy


def test_the_probe_gives_up_on_one_that_hangs():
    report = probe_file(wire.Open("any"), patience_s=0.2, command=["sleep", "60"])
    assert not report.ok
    assert "no sign of life" in report.text


def test_threads_of_the_engine_spin_shortly_unless_the_user_says_otherwise(monkeypatch):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    assert process.environment()["GOMP_SPINCOUNT"] == "3000"
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    assert process.environment()["GOMP_SPINCOUNT"] == "7"
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert "GOMP_SPINCOUNT" not in process.environment()


def test_nothing_of_the_engine_reaches_the_terminal(bundled):
    """What llama.cpp and Python print goes to stderr, which the client points at a file; stdout has messages only."""
    import subprocess

    order = wire.frame(wire.Open(str(bundled), slots=1, threads=1))
    child = subprocess.Popen(
        process.command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=process.environment(),
    )
    try:
        child.stdin.write(order)
        child.stdin.flush()
        unframer, heard = wire.Unframer(), []
        while not any(isinstance(each, wire.Ready) for each in heard):
            heard += unframer.feed(child.stdout.read1(65536))
        assert all(isinstance(each, wire.Ready | wire.Beat) for each in heard)
        child.stdin.close()
        # Its client is gone: so is it.
        assert child.wait(30) == 0
        assert child.stdout.read() == b""
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
