"""Every screen in these tests shows UTC."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time zone, and forget what the person's terminal says of itself."""
    monkeypatch.setenv("TZ", "UTC")
    for name in ("NO_COLOR", "COLORFGBG", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
