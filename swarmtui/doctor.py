"""Checks of this machine: each says in one line what is, and what would mend it."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec

from swarmtui.config import Config
from swarmtui.files import reason_of
from swarmtui.paths import Folders

Verdict = Literal["good", "warn", "bad"]

SMALLEST = (60, 16)
WIDE = 100
FREE_MB = 100
EARLIEST = 1_750_000_000
"""Unix seconds before which no clock of this program's life can stand (June 2025)."""


class Check(msgspec.Struct, frozen=True):
    """What one check has found."""

    name: str
    verdict: Verdict
    text: str
    remedy: str = ""

    def facts(self) -> dict[str, str]:
        """The same as plain data."""
        return dict(msgspec.to_builtins(self))


def examine(config: Config) -> Iterator[Check]:
    """Yield the checks one by one as they're made, quick ones first. None of them raises."""
    checks: list[tuple[str, Callable[[Config], Check | Iterator[Check]]]] = [
        ("python", _python),
        ("libp2p", _libp2p),
        ("terminal", _terminal),
        ("clock", _clock),
        ("data", _data),
        ("network", _network),
        ("mdns", _mdns),
        ("model", _models),
        ("llama.cpp", _llama),
    ]
    for name, check in checks:
        try:
            made = check(config)
            yield from [made] if isinstance(made, Check) else made
        except Exception as error:  # a check that fails is a finding, not an end
            yield Check(name, "bad", f"couldn't be checked: {type(error).__name__}: {error}", "please report this")


def _python(config: Config) -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("python", "good", f"{version}, {sys.executable}")


def _libp2p(config: Config) -> Check:
    try:
        import libp2p  # noqa: F401 - that it imports is the check
    except ImportError as error:
        return Check("libp2p", "bad", f"can't be imported: {error}", "install swarmtui again")
    version = metadata.version("libp2p")
    if not version.startswith("0.8."):
        return Check("libp2p", "warn", f"{version}: swarmtui is made for 0.8", 'pip install "libp2p==0.8.*"')
    return Check("libp2p", "good", version)


def _terminal(config: Config) -> Check:
    if not sys.stdout.isatty():
        return Check("terminal", "good", "none here: `swarmtui run` and `observe` need none")
    columns, rows = shutil.get_terminal_size()
    encoding = (sys.stdout.encoding or "").lower()
    if "utf" not in encoding:
        return Check("terminal", "warn", f"its encoding is {encoding}: glyphs will be wrong", "set LANG=C.UTF-8")
    if columns < SMALLEST[0] or rows < SMALLEST[1]:
        return Check(
            "terminal", "warn", f"{columns}×{rows} is too small", f"make it {SMALLEST[0]}×{SMALLEST[1]} or larger"
        )
    term, colour = os.environ.get("TERM", ""), os.environ.get("COLORTERM", "")
    if term in ("", "dumb"):
        return Check("terminal", "bad", "TERM isn't set, or dumb", "set TERM, e.g. TERM=xterm-256color")
    colours = "true colour" if colour in ("truecolor", "24bit") else "256 colours" if "256" in term else "16 colours"
    layout = "panels side by side" if columns >= WIDE else f"panels as tabs below {WIDE} columns"
    return Check("terminal", "good", f"{columns}×{rows}, {colours}, UTF-8, {layout}")


def _clock(config: Config) -> Check:
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < EARLIEST:
        return Check("clock", "bad", f"it says {stamp}", "set this machine's clock: others won't accept its ops")
    return Check("clock", "good", f"{stamp}; peers tell on screen if it's more than 5 s from theirs")


def _data(config: Config) -> Check:
    folder = Folders(config.data_dir).data
    near = folder
    while not near.exists() and near != near.parent:
        near = near.parent
    try:
        with tempfile.TemporaryFile(dir=near) as file:
            file.write(b"swarmtui")
            file.flush()
    except OSError as error:
        text = f"{folder} can't be written ({reason_of(error)}): plans live in memory"
        return Check("data", "warn", text, "choose --data-dir")
    free = shutil.disk_usage(near).free // 1_000_000
    if free < FREE_MB:
        return Check("data", "warn", f"{folder} has {free} MB left", "free some space, or choose --data-dir")
    return Check("data", "good", f"{folder} ({free:,} MB free)")


def _network(config: Config) -> Check:
    swarm = config.swarm
    for address in swarm.listen_addresses():
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            try:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((address, swarm.port))
                probe.listen(1)
            except OSError as error:
                where = f"{address} port {swarm.port or 'any'}"
                return Check("network", "bad", f"{where}: {reason_of(error)}", "choose another --port or --listen")
    if swarm.listen == "local":
        return Check("network", "good", "listens on this machine alone (--listen lan for others)")
    if not swarm.secret:
        text = f"listens on {swarm.listen} without a secret: whoever reaches it can join"
        return Check("network", "warn", text, "set SWARMTUI_SWARM_SECRET on every machine")
    return Check("network", "good", f"listens on {swarm.listen}, with a secret")


def _mdns(config: Config) -> Check:
    if not config.swarm.mdns:
        return Check("mdns", "good", "off: peers are found by --join alone")
    addresses = _own_addresses()
    if not addresses:
        return Check("mdns", "warn", "no network interface is up", "connect to a network, or use --no-mdns")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            member = socket.inet_aton("224.0.0.251") + socket.inet_aton(addresses[0])
            probe.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        except OSError as error:
            return Check("mdns", "warn", f"no multicast here ({reason_of(error)})", "name peers with --join")
    return Check("mdns", "good", f"multicast works ({', '.join(addresses[:3])})")


def _own_addresses() -> list[str]:
    """The IPv4 addresses of this machine's interfaces."""
    import ifaddr

    return [ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips if isinstance(ip.ip, str)]


def _models(config: Config) -> Iterator[Check]:
    """Each model that agents are configured to use."""
    for spec in dict.fromkeys(map(config.model_of, ("decomposer", "scorer", "executor"))):
        yield _model(config, spec)


def _model(config: Config, spec: str) -> Check:
    from swarmtui.llm.model import ModelError
    from swarmtui.llm.models import SCRIPTED, choose, require_memory
    from swarmtui.llm.remote.address import is_address
    from swarmtui.llm.remote.meeting import meet

    if spec == SCRIPTED:
        return Check("model", "good", "scripted: canned answers, no model")
    try:
        if is_address(spec):
            met = meet(spec, config.key(), config.llm.key_variable, config.llm.slots)
            return Check("model", "warn" if met.notices else "good", " ".join([f"{met.in_words()}.", *met.notices]))
        file = choose(spec, config.models_dir)
        fit = require_memory(file, config.llm)
    except ModelError as error:
        return Check("model", "bad", str(error), error.remedy)
    if fit.verdict == "tight":
        return Check("model", "warn", f"{file.name}: {fit.in_words()}", "close other programs, or choose a smaller one")
    if not file.template:
        return Check(
            "model", "warn", f"{file.name} has no chat template", "plain completion is used; another may do better"
        )
    return Check("model", "good", f"{file.name}, {Path(file.path).name}, {file.size // 1_000_000:,} MB")


def _llama(config: Config) -> Iterator[Check]:
    """Measure in a child process: a build that dies here dies there."""
    from swarmtui.llm.remote.address import is_address

    if config.model == "scripted" or is_address(config.model):
        yield Check("llama.cpp", "good", "isn't needed by this model")
        return
    from swarmtui.llm.probe import probe
    from swarmtui.llm.tuning import Notebook, in_words
    from swarmtui.paths import measurements, swift_models_dir

    report = probe(config, Notebook(measurements()), swift_models_dir())
    if report.trouble:
        yield Check("copy", "warn", report.trouble, "free some space, or see the log")
    elif report.file is not None and report.file.path.parent == swift_models_dir():
        text = f"the bundled model is used as a faster {report.file.quantisation} copy: {report.file.path}"
        yield Check("copy", "good", text)
    yield Check("llama.cpp", "good" if report.ok else "bad", report.text, report.remedy)
    if report.ok:
        yield Check("batching", "good", in_words(report.speeds, report.width))
