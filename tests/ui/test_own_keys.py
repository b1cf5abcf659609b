"""A person's own keys."""

from __future__ import annotations

import pytest

from swarmtui.ui.actions import KeyConfigError, Keys

from .driving import Driver, drive
from .sample import japan, view_of


def test_own_keys() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("e")
        assert d.swarm.asked == []
        await d.press("ctrl+e", "z", "f5")
        assert d.swarm.asked == [("add_agent", "executor", "", "", "", ())]
        assert d.app.main.plan_tree.cursor == 1
        assert "ctrl+e executor" in d.text()
        assert d.screen == "Help"

    drive(scenario, view_of(japan()), keys={"add_executor": "ctrl+e", "down": "z", "help": "f5,?"})


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"kil": "k"}, "did you mean kill?"),
        ({"kill": "d"}, "already the key of add_decomposer"),
        ({"kill": ""}, "empty"),
        ({"new_goal": "j"}, "already the key of"),
        ({"next_match": "N"}, "already the key of"),
    ],
)
def test_own_keys_that_cannot_be(own: dict[str, str], words: str) -> None:
    with pytest.raises(KeyConfigError, match=words.replace("?", r"\?")):
        Keys(own)
