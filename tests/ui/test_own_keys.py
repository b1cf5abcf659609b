"""A person's own keys."""

from __future__ import annotations

import pytest

from swarmtui.plan.ops import Step
from swarmtui.plan.picture import Picture
from swarmtui.plan.progress import plan_stalls
from swarmtui.ui.actions import KeyConfigError, Keys
from swarmtui.ui.states import mended
from swarmtui.ui.widgets.detail import TABS
from tests.plan.scene import Scene, living, name_of, peer

from .driving import Driver, drive
from .sample import japan, nothing, view_of


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


OWN = {
    "new_goal": "f1",
    "add_decomposer": "f2",
    "add_scorer": "f3",
    "add_executor": "f4",
    "form_executor": "f6",
    "policy": "f7,Q",
    "retry_task": "f8",
}


def test_every_remedy_names_the_persons_own_keys() -> None:
    drafted, named = Scene(), Scene(scorers=(peer("cleo"), peer("dora")))
    for scene in (drafted, named):
        scene.draft("ada", "Book", "Pack")
    cases = (
        (Scene(), living(), "no decomposer, scorer, executor: press f2, f3, f4 to add them"),
        (Scene(), living(scorers="cleo", executors="finn"), "no decomposer: press f2 to add one"),
        (drafted, living("ada", "cleo"), "1 scorer, quorum 2: press f3 to add a scorer, or f7 to lower the quorum"),
        (named, living("ada", "cleo"), "that the policy names are there, quorum 2: press f7 to change the policy"),
    )
    for scene, there, words in cases:
        (found,) = plan_stalls(scene.plan, there)
        assert mended(found, Keys(OWN)).endswith(words)


def test_the_screen_names_the_persons_own_keys_where_nothing_moves() -> None:
    scene = Scene(attempts=1, skills=("write", "{quit}"))
    draft = scene.draft("ada", "Book", Step(title="Cook", atomic=True, needs="{quit}"))
    scene.accept(draft)
    scene.release(scene.claim("finn", scene.task(draft).id))
    picture = Picture(scene.goal.id, name_of, scene.replica.get)
    plan = picture.draw(scene.plan, [], living("ada", "cleo dora", "finn"), peer("you"))
    retry = "given back 1 time: press f8 to try again"
    skill = "no executor has the skill '{quit}': press f6 to add one that has"

    async def scenario(d: Driver) -> None:
        notices = str(d.app.main.notices.render())
        assert f"“Book”: {retry}" in notices and f"“Cook”: {skill}" in notices
        await d.press("1", "down", "3")
        assert retry in _detail(d)
        d.app.main.detail.show_tab(TABS.index("Result"))
        assert "It failed: press f8 to try again." in _detail(d)
        d.app.main.detail.show_tab(TABS.index("Task"))
        await d.press("1", "down")
        assert skill in _detail(d)

    drive(scenario, view_of(plan), keys=OWN)


def _detail(d: Driver) -> str:
    """The page in the detail panel, unwrapped."""
    page = d.app.main.detail.page
    return " ".join(" ".join(page.draw(index, 200).plain for index in range(len(page.keys))).split())


def test_hints_and_help_name_the_persons_own_keys() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("escape")
        shown = d.text()
        for words in ("press f1 and give the swarm a goal", "press f2 for a decomposer, f3 for a scorer, f4 for"):
            assert words in shown, words
        await d.press("question_mark", "G")
        assert "given back too often; f8 tries again" in d.text()

    drive(scenario, nothing(), (220, 40), keys=OWN)


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
