"""Starting an engine process, and telling in plain words how one died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import trio

MAX_LOG = 1 << 20
"""Bytes; a longer log is begun anew by the next engine."""


def remedy_for(code: int) -> tuple[str, str]:
    """(how a process with this exit code died, what a person can do)."""
    if code >= 0:
        return f"the engine ended with exit code {code}", "see its log (swarmtui paths names the folder)"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    remedies = {
        "SIGILL": "llama.cpp was built for another processor: CMAKE_ARGS=-DGGML_NATIVE=OFF pip install "
        "--force-reinstall --no-deps --no-cache-dir --no-binary llama-cpp-python llama-cpp-python",
        "SIGKILL": "probably out of memory: choose a smaller model, or set llm.slots or llm.context lower",
        "SIGSEGV": "a fault in llama.cpp or a damaged model file: try another model, or update llama-cpp-python",
        "SIGABRT": "a fault in llama.cpp or a damaged model file: try another model, or update llama-cpp-python",
        "SIGBUS": "the model's file changed or its disk failed while it was in use: get the file again",
    }
    return f"the engine died of {name}", remedies.get(name, "")


def environment() -> dict[str, str]:
    """The engine's environment.

    Waiting threads spin for some microseconds before they sleep. OpenMP's default, milliseconds, takes the cores from
    the swarm itself; sleeping at once costs a third of the speed (docs/engine.md).
    """
    found = dict(os.environ)
    if "OMP_WAIT_POLICY" not in found:
        found.setdefault("GOMP_SPINCOUNT", "3000")
    # The engine must find this very package, wherever it was imported from, and nothing from the current folder.
    root = str(Path(__file__).resolve().parents[2])
    found["PYTHONPATH"] = os.pathsep.join(filter(None, (root, found.get("PYTHONPATH", ""))))
    found["PYTHONSAFEPATH"] = "1"
    return found


def command() -> list[str]:
    """What starts an engine."""
    return [sys.executable, "-m", "swarmtui.llm.engine"]


async def spawn(log: Path | None) -> trio.Process:
    """Start an engine whose messages go through pipes and whose prints go to the log.

    Raises:
        OSError: the process can't be started.
    """
    stream = _open_log(log)
    try:
        return await trio.lowlevel.open_process(
            command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stream,
            env=environment(),
            start_new_session=True,
        )
    finally:
        if stream != subprocess.DEVNULL:
            os.close(stream)


def _open_log(log: Path | None) -> int:
    """A file descriptor for stderr. Without a log that can be written the engine's prints are dropped.

    What an engine said before it died stays when the next one is started, and several write at the same time.
    """
    if log is None:
        return subprocess.DEVNULL
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if os.fstat(file).st_size > MAX_LOG:
            os.ftruncate(file, 0)
        return file
    except OSError:
        return subprocess.DEVNULL
