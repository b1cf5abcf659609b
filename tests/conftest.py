"""What every test shares: Hypothesis profiles, and a home of its own so that no test sees the person's files."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# "ci" is the default everywhere: repeatable, and no test fails because a machine is slow.
settings.register_profile(
    "ci",
    max_examples=60,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A background job of a shell is deaf to Ctrl-C, and so are its children; tests of what Ctrl-C does need some that hear.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the XDG folders into a temporary one and forget SWARMTUI_… variables."""
    home = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith("SWARMTUI_")]:
        monkeypatch.delenv(name)
    for name, folder in (("CONFIG", "config"), ("DATA", "data"), ("CACHE", "cache"), ("STATE", "state")):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / folder))
    return home
