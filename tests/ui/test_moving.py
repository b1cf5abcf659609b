"""Moving, folding, finding."""

from __future__ import annotations

import msgspec
import pytest
from textual import events
from textual.keys import _character_to_key
from textual.widgets import Input, TextArea

from swarmtui.plan.state import State
from swarmtui.view import TaskView

from .driving import NARROW, WIDE, Driver, drive
from .sample import ident, japan, plan_of, view_of


def test_fold_and_unfold() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("down", "space")
        assert "Reserve seats" not in d.text()
        assert "▸" in d.text()
        await d.press("right")
        assert "Buy the rail pass" in d.text()
        await d.press("left")
        assert "Buy the rail pass" not in d.text()
        await d.press("h")
        assert d.app.main.plan_tree.key == ident("root")

    drive(scenario, view_of(japan()))


def test_a_branch_that_is_finished_folds_and_stays_open_when_unfolded() -> None:
    async def scenario(d: Driver) -> None:
        tasks = [t if t.id != ident("flights") else _with(t, state=State.DONE) for t in japan().tasks.values()]
        await d.change(plan=plan_of(tasks))
        assert "Reserve seats" not in d.text()
        await d.press("down", "space")
        await d.change(plan=plan_of(tasks))
        assert "Reserve seats" in d.text()

    drive(scenario, view_of(japan()))


def _with(view: TaskView, **fields: object) -> TaskView:

    return msgspec.structs.replace(view, **fields)


def test_enter_opens_the_detail() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("down", "down", "down", "down", "enter", "right", "right", "right")
        assert d.app.main.panel == "detail"
        assert "Kyoto to Hiroshima" in d.text()
        await d.press("left")
        assert d.app.main.detail.tab == 2

    for size in (WIDE, NARROW):
        drive(scenario, view_of(japan()), size)


def test_keys_typed_faster_than_the_focus_follows() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("2")
        for key in "13":
            d.app.post_message(events.Key(key, key))
        await d.settle()
        assert (d.app.main.panel, d.app.main.detail.agent) == ("detail", None)
        assert "d decomposer" not in d.text().splitlines()[-1]

    drive(scenario, view_of(japan()))


@pytest.mark.parametrize(("open_", "entry"), [("n", "#field-goal"), ("Q", "#field-need"), ("slash", "#filter")])
def test_characters_and_editing_keys_keep_their_order_however_fast(open_: str, entry: str) -> None:
    async def scenario(d: Driver) -> None:
        await d.press(open_)
        for key in ("end", "backspace", "n", "o", "backspace", "e", "x", "home", "a", "end", "left", "backspace", "!"):
            d.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await d.settle()
        widget = d.app.screen.query_one(entry)
        assert isinstance(widget, Input | TextArea)
        assert (widget.text if isinstance(widget, TextArea) else widget.value) == "an!x"

    drive(scenario, view_of(japan()))


def test_filter_next_previous_and_end() -> None:
    async def scenario(d: Driver) -> None:
        tree = d.app.main.plan_tree
        await d.press("slash", *"rea", "enter")
        assert len(tree.matches) == 1
        assert "Temples" not in d.text()
        await d.press("n", "N")
        assert d.screen == "MainScreen"
        await d.press("escape")
        assert "Temples" in d.text()
        await d.press("slash", *"stalled", "enter")
        assert tree.key == ident("temples")
        await d.press("slash", *"press s", "enter")
        assert tree.matches == {ident("temples")}
        await d.press("escape", "n")
        assert d.screen == "GoalForm"

    drive(scenario, view_of(japan()))


def test_next_match_goes_round() -> None:
    async def scenario(d: Driver) -> None:
        tree = d.app.main.plan_tree
        await d.press("slash", *"rail", "enter")
        first = tree.key
        await d.press("n")
        assert tree.key != first
        await d.press("n")
        assert tree.key == first
        await d.press("N")
        assert tree.key != first

    drive(scenario, view_of(japan()))


def test_follow_goes_to_the_newest_change() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("f")
        await d.change(gossip=tuple(d.swarm.latest.gossip))
        await d.change(gossip=d.swarm.latest.gossip[:2])
        assert d.app.main.plan_tree.key == ident("fares")
        assert "following" in d.text()
        await d.press("f", "g")
        await d.change(gossip=d.swarm.latest.gossip[:1])
        assert d.app.main.plan_tree.key == ident("root")

    drive(scenario, view_of(japan()))


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_panels(size: tuple[int, int]) -> None:
    async def scenario(d: Driver) -> None:
        main = d.app.main
        for key, name in (("2", "agents"), ("3", "detail"), ("4", "gossip"), ("1", "plan")):
            await d.press(key)
            assert main.panel == name
            assert main.focused is not None
            assert main.focused.region.area > 0
        for name in ("agents", "detail", "gossip", "plan"):
            await d.press("tab")
            assert main.panel == name
        await d.press("shift+tab")
        assert main.panel == "gossip"

    drive(scenario, view_of(japan()), size)


def test_moving() -> None:
    async def scenario(d: Driver) -> None:
        tree = d.app.main.plan_tree
        places = []
        for key in ("j", "down", "k", "up", "G", "g", "end", "home", "ctrl+d", "ctrl+u"):
            await d.press(key)
            places.append(tree.cursor)
        assert places == [1, 2, 1, 0, 7, 0, 7, 0, 7, 0]

    drive(scenario, view_of(japan()))


@pytest.mark.parametrize("open_", ["n", "Q", "i", "w", "D", "m", "l", "?", ":", "x", "q"])
def test_windows_open_and_close_once_however_fast_the_keys(open_: str) -> None:
    async def scenario(d: Driver) -> None:
        await d.press("2", "down", "down")
        screens = list(d.app.screen_stack)
        for key in (open_, open_):
            d.app.post_message(events.Key(_character_to_key(key), key))
        await d.settle()
        assert len(d.app.screen_stack) <= len(screens) + 1
        for _ in range(4):
            d.app.post_message(events.Key("escape", None))
        await d.settle()
        assert d.app.screen_stack == screens
        assert d.swarm.asked == []

    drive(scenario, view_of(japan()))


@pytest.mark.parametrize(
    ("open_", "answer", "asked"),
    [
        (("n", *"Fish"), "enter", ("give_goal", "Fish", "")),
        (("2", "down", "down", "x"), "y", ("kill", "12D3KooWcleo")),
        ((":", *"add a scorer: it"), "enter", ("add_agent", "scorer")),
    ],
)
def test_an_answer_given_several_times_counts_once(open_: tuple[str, ...], answer: str, asked: tuple[str, ...]) -> None:
    async def scenario(d: Driver) -> None:
        screens = list(d.app.screen_stack)
        await d.press(*open_)
        await d.until(lambda: "it votes on drafts" in d.text() or ":" not in open_)
        for _ in range(4):
            d.app.post_message(events.Key(answer, answer if len(answer) == 1 else None))
        await d.until(lambda: bool(d.swarm.asked))
        await d.settle()
        assert d.app.screen_stack == screens
        assert [each[: len(asked)] for each in d.swarm.asked] == [asked]

    drive(scenario, view_of(japan()))


def test_keys_typed_fast_are_handled_in_order() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("2")
        for key in ("down", "X", "down", "X"):
            d.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await d.until(lambda: len(d.swarm.asked) == 2)
        assert d.swarm.asked == [("crash", "12D3KooWbob"), ("crash", "12D3KooWcleo")]

    drive(scenario, view_of(japan()))
