"""Does llama.cpp work here? Tried in a process of its own, since a build for another processor dies without a word."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Protocol

import msgspec
import trio

from swarmtui.files import reason_of
from swarmtui.llm import models, process, swift, tuning, wire
from swarmtui.llm.machine import EngineNumbers
from swarmtui.llm.model import ModelError

PATIENCE_S = 240.0
"""For how long the engine may say nothing at all, while it loads or measures. Slow isn't silent: see `engine_pulse`."""
LOOK_S = 0.2


class ProbeConfig(Protocol):
    """What is needed of the configuration."""

    @property
    def model(self) -> str: ...
    @property
    def models_dir(self) -> Path | None: ...
    @property
    def llm(self) -> EngineNumbers: ...


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    ok: bool
    text: str
    """One line for a person."""
    remedy: str = ""
    read_per_second: float = 0.0
    """Tokens of a prompt."""
    width: int = 0
    """Answers that go on in one step."""
    speeds: tuple[wire.Speed, ...] = ()
    """What that was decided by."""
    notices: list[str] = []
    file: models.ModelFile | None = None
    """What was loaded; a faster copy perhaps."""
    trouble: str = ""
    """Why that's no faster copy though it should be."""


def probe(
    config: ProbeConfig,
    notebook: tuning.Notebook | None = None,
    copies: Path | None = None,
    patience_s: float = PATIENCE_S,
) -> Report:
    """Load the configured model in a child process and measure it. Blocks; never raises.

    Args:
        config: says which model, and how it's to be run.
        copies: where faster copies of the bundled model lie (see `swift`).
        notebook: keeps the figures, in place of older ones.
        patience_s: see `PATIENCE_S`.
    """
    try:
        file = models.choose(config.model, config.models_dir)
    except ModelError as error:
        return Report(ok=False, text=str(error), remedy=error.remedy)
    numbers = config.llm
    made = trio.run(swift.prepare, file, numbers, copies) if copies else swift.Swift(file)
    file = made.file
    order = wire.Open(
        path=str(file.path),
        threads=numbers.threads,
        context=numbers.context,
        slots=numbers.slots,
        gpu_layers=numbers.gpu_layers,
        measure=True,
    )
    report = probe_file(order, patience_s)
    if report.speeds and notebook is not None:
        measured = tuning.Measured(report.read_per_second, report.speeds)
        notebook.write(tuning.key(file.path, numbers), measured)
    return msgspec.structs.replace(report, file=file, trouble=made.trouble)


def probe_file(order: wire.Open, patience_s: float = PATIENCE_S, command: list[str] | None = None) -> Report:
    """Give an engine an order with `measure` set and tell what came of it. Its process is gone on return."""
    try:
        child = subprocess.Popen(
            command or process.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=process.environment(),
            start_new_session=True,
        )
    except OSError as error:
        return Report(ok=False, text=f"the engine can't be started: {reason_of(error)}")
    try:
        # It ends by itself once the pipe is closed, but only after its answer: stdin stays open until then.
        out, said = _converse(child, wire.frame(order), patience_s)
    except subprocess.TimeoutExpired:
        return Report(ok=False, text=f"no sign of life for {patience_s:.0f} s", remedy="choose a smaller model")
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                stream.close()
    return _report(out, said, child.returncode)


def _converse(child: subprocess.Popen[bytes], order: bytes, patience_s: float) -> tuple[bytes, str]:
    """(the answer, what went to stderr)."""
    assert child.stdin
    out, err = bytearray(), bytearray()
    answered = threading.Event()
    heard = time.monotonic()

    def listen() -> None:
        nonlocal heard
        unframer = wire.Unframer()
        assert child.stdout
        while data := os.read(child.stdout.fileno(), 65_536):
            heard = time.monotonic()
            out.extend(data)
            try:
                if any(not isinstance(each, wire.Beat) for each in unframer.feed(data)):
                    break
            except wire.WireError:
                break
        answered.set()

    def drain() -> None:
        assert child.stderr
        while data := os.read(child.stderr.fileno(), 65_536):
            err.extend(data[: max(0, 1_000_000 - len(err))])

    threads = [threading.Thread(target=each, daemon=True) for each in (listen, drain)]
    for thread in threads:
        thread.start()
    try:
        child.stdin.write(order)
        child.stdin.flush()
    except BrokenPipeError:
        pass
    while not answered.wait(min(LOOK_S, patience_s)):
        if time.monotonic() - heard > patience_s:
            raise subprocess.TimeoutExpired(child.args, patience_s)
    try:
        child.stdin.close()
    except BrokenPipeError:
        pass
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    for thread in threads:
        thread.join(5)
    return bytes(out), err.decode("utf-8", "replace")


def _works(message: wire.Ready) -> Report:
    alone = message.speeds[0].per_second if message.speeds else 0.0
    written = f"{alone:.0f} written" if alone else "writing is too slow to be measured"
    return Report(
        ok=True,
        text=f"decodes here: {message.prefill:.0f} tokens/s read, {written}, "
        f"loaded in {message.seconds:.1f} s, {message.threads} thread{'' if message.threads == 1 else 's'}",
        read_per_second=message.prefill,
        width=message.width,
        speeds=tuple(message.speeds),
        notices=message.notices,
    )


def _report(out: bytes, said: str, code: int | None) -> Report:
    try:
        messages = list(wire.Unframer().feed(out))
    except wire.WireError:
        messages = []
    for message in messages:
        if isinstance(message, wire.Ready):
            return _works(message)
        if isinstance(message, wire.Refused):
            return Report(ok=False, text=message.reason, remedy=message.remedy)
    if "No module named 'llama_cpp'" in said:
        return Report(
            ok=False,
            text="llama-cpp-python isn't installed",
            remedy="CMAKE_ARGS=-DGGML_NATIVE=OFF pip install llama-cpp-python (needs a C++ compiler)",
        )
    reason, remedy = process.remedy_for(code if code is not None else -9)
    last = said.strip().splitlines()[-1:] if code and code > 0 else []
    return Report(ok=False, text=": ".join([reason, *last])[:500], remedy=remedy)
