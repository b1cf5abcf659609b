"""Every key of the table does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, Static

from swarmtui.plan.ops import Note, Pause, Pick, Retry, SetPolicy, Veto
from swarmtui.ui.actions import ACTIONS, Keys
from swarmtui.ui.app import SwarmApp
from swarmtui.ui.palette import SwarmCommands
from swarmtui.ui.screens.main import SMALLEST, MainScreen
from swarmtui.ui.screens.reading import help_lines
from swarmtui.ui.widgets.lines import Lines
from swarmtui.view import KeptPlan

from .driving import NARROW, Driver, drive
from .sample import NOW, FakeSwarm, ident, japan, plan_of, task, view_of


def test_every_action_has_a_method() -> None:
    for action in ACTIONS:
        assert hasattr(Lines if action.scope == "list" else MainScreen, f"action_{action.name}"), action.name


@pytest.mark.parametrize(("key", "role"), [("d", "decomposer"), ("s", "scorer"), ("e", "executor")])
def test_add_an_agent(key: str, role: str) -> None:
    async def scenario(d: Driver) -> None:
        await d.press(key)
        assert d.swarm.asked == [("add_agent", role, "", "", "", ())]
        assert d.toasts() == ["add_agent is done"]

    drive(scenario, view_of(japan()))


@pytest.mark.parametrize(("key", "role"), [("D", "decomposer"), ("S", "scorer"), ("E", "executor")])
def test_add_an_agent_with_a_form(key: str, role: str) -> None:
    async def scenario(d: Driver) -> None:
        await d.press(key)
        assert d.screen == "Form"
        await d.press(*"zoe", *(["tab"] * (3 if role == "decomposer" else 2)), *"write,sum", "enter")
        assert d.swarm.asked == [("add_agent", role, "zoe", "", "", ("write", "sum"))]
        await d.press(key, "escape")
        assert len(d.swarm.asked) == 1

    drive(scenario, view_of(japan()))


def test_kill_asks_while_the_agent_works_and_no_is_the_default() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("2", "x")
        assert d.screen == "Confirm"
        assert "End ada?" in d.text()
        assert "It drafts a split of “Food in Kyoto”." in d.text()
        await d.press("enter")
        assert d.swarm.asked == []
        await d.press("x", "y")
        assert d.swarm.asked == [("kill", "12D3KooWada")]

    drive(scenario, view_of(japan()))


def test_kill_from_elsewhere_first_goes_to_the_agents() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("x")
        assert d.swarm.asked == []
        assert d.app.main.panel == "agents"

    drive(scenario, view_of(japan()))


def test_agents_that_are_elsewhere_or_gone_cannot_be_ended() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("2", "down", "down", "down", "x", "down", "X")
        assert d.swarm.asked == []
        assert "another program" in d.toasts()[0]
        assert "gone already" in d.toasts()[1]

    drive(scenario, view_of(japan()))


def test_crash_and_pause_an_agent() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("2", "j", "X", "p")
        assert d.swarm.asked == [("crash", "12D3KooWbob"), ("pause_agent", "12D3KooWbob", True)]

    drive(scenario, view_of(japan()))


@pytest.mark.parametrize("panel", ["2", "3"])
def test_keys_mean_the_agent_in_its_list_and_in_its_detail(panel: str) -> None:
    async def scenario(d: Driver) -> None:
        await d.press("2", "j", panel, "p", "X")
        assert d.swarm.asked == [("pause_agent", "12D3KooWbob", True), ("crash", "12D3KooWbob")]
        await d.press("m")
        assert "Model of bob" in d.text()

    drive(scenario, view_of(japan()))


def test_pause_on_the_plan_pauses_the_plan() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("p")
        assert d.swarm.asked == [("steer", ident("root"), Pause(on=True))]

    drive(scenario, view_of(japan()))


def test_policy_form() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("Q", "backspace", *"lots", "enter")
        assert d.screen == "Form"
        assert "majority, two-thirds or all" in d.text()
        await d.press(*(["backspace"] * 4), *"all", "enter")
        (_, plan, act) = d.swarm.asked[0]
        assert isinstance(act, SetPolicy)
        assert (plan, act.policy.need, act.policy.of) == (ident("root"), 1, 1)

    drive(scenario, view_of(japan()))


@pytest.mark.parametrize(("key", "act"), [("a", Pick), ("v", Veto)])
def test_pick_and_veto(key: str, act: type[Pick] | type[Veto]) -> None:
    async def scenario(d: Driver) -> None:
        await d.press(*(["down"] * 5), key)
        assert d.swarm.asked == []
        assert (d.app.main.panel, d.app.main.detail.tab) == ("detail", 1)
        await d.press("j", key)
        assert d.swarm.asked == [("steer", ident("root"), act(proposal=ident("by budget")))]

    drive(scenario, view_of(japan()))


def test_pick_from_the_agents_shows_the_drafts_first() -> None:
    async def scenario(d: Driver) -> None:
        await d.press(*(["down"] * 5), "2", "a")
        assert d.swarm.asked == []
        assert (d.app.main.detail.agent, d.app.main.detail.tab) == (None, 1)
        await d.press("a")
        assert d.swarm.asked == [("steer", ident("root"), Pick(proposal=ident("by place")))]

    drive(scenario, view_of(japan()))


def test_a_draft_that_is_out_of_sight_is_not_picked() -> None:
    async def scenario(d: Driver) -> None:
        await d.press(*(["down"] * 5), "a", "1", "a")
        assert d.swarm.asked == []
        assert d.app.main.panel == "detail"

    drive(scenario, view_of(japan()), NARROW)


def test_a_draft_that_is_out_of_sight_is_not_picked_before_that_is_laid_out_either() -> None:
    async def scenario(d: Driver) -> None:
        await d.press(*(["down"] * 5), "a")
        d.app.main.go_to("plan")
        d.app.main.action_pick_draft()
        assert d.swarm.asked == []
        assert d.app.main.panel == "detail"

    drive(scenario, view_of(japan()), NARROW)


def test_retry_asks_before_it_throws_a_result_away() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("down", "down", "r")
        assert d.swarm.asked == [("steer", ident("root"), Retry(task=ident("fares")))]
        await d.press("down", "down", "r")
        assert d.screen == "Confirm"
        await d.press("y")
        assert d.swarm.asked[1] == ("steer", ident("root"), Retry(task=ident("seats")))

    drive(scenario, view_of(japan()))


def test_a_swarm_elsewhere_is_joined_by_an_address() -> None:
    address = "/ip4/192.0.2.7/tcp/4001/p2p/12D3KooWother"

    async def scenario(d: Driver) -> None:
        await d.press("J", "enter")
        assert d.screen == "Form" and "paste an address" in d.text()
        await d.type(f" {address}")
        await d.press("enter")
        assert d.swarm.asked == [("connect", address)]

    drive(scenario, view_of(japan()))


def test_note() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("down", "i", "enter")
        assert d.screen == "Form"
        await d.press(*"By", "space", *"train!", "enter")
        assert d.swarm.asked == [("steer", ident("root"), Note(task=ident("flights"), text="By train!"))]

    drive(scenario, view_of(japan()))


def test_a_note_on_what_is_done_tells_how_it_comes_to_be_minded() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("down", "i")
        assert "done already" not in d.text()
        await d.press("escape", "down", "down", "down", "i")
        assert "It's done already. After the note, r has it done again" in " ".join(d.text().split())

    drive(scenario, view_of(japan()))


def test_steering_somebody_elses_plan_is_refused_with_a_reason() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("p", "Q", "r", "i", "a")
        assert d.swarm.asked == []
        assert all("Only who gave this goal" in toast for toast in d.toasts())
        assert d.screen == "MainScreen"

    drive(scenario, view_of(plan_of(list(japan().tasks.values()), mine=False)))


def test_export_writes_and_asks_before_writing_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "plan-a-two-week-trip-to-japan.md"

    async def scenario(d: Driver) -> None:
        await d.press("w")
        assert d.screen == "Form"
        await d.press("enter")
        await d.until(lambda: bool(d.toasts()))
        assert str(file) in d.toasts()[0]
        assert "Compare fares" in file.read_text()
        file.write_text("mine")
        await d.press("w", "enter")
        assert d.screen == "Confirm"
        await d.press("enter")
        assert file.read_text() == "mine"
        await d.press("w", "enter", "y")
        await d.until(lambda: len(d.toasts()) == 2)
        assert "Compare fares" in file.read_text()
        await d.press("w", "tab", "tab", *(["shift+tab"] * 2), *(["end"]), *"x", "enter")

    drive(scenario, view_of(japan()))


def test_of_a_long_path_the_end_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("deep-" * 12) / ("down-" * 12)
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)

    async def scenario(d: Driver) -> None:
        await d.press("w")
        await d.until(lambda: "trip-to-japan.md" in d.text())

    drive(scenario, view_of(japan()))


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("", "Give the name"),
        ("nowhere/plan.md", "doesn't exist"),
        ("~nobody-is-called-this/plan.md", "doesn't exist"),
        (".", "is a folder"),
        ("..", "is a folder"),
        ("folder", "is a folder"),
        ("new/", "is a folder"),
        ("/", "is a folder"),
        ("~", "is a folder"),
        ("long" * 100, "too long"),
        ("long" * 100 + "/x/plan.md", "too long"),
    ],
)
def test_export_to_where_no_file_can_be_is_refused_in_the_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "folder").mkdir()

    async def scenario(d: Driver) -> None:
        await d.press("w")
        d.app.screen.query_one("#field-path", Input).value = typed
        await d.press("enter")
        assert d.screen == "Form"
        assert why in str(d.app.screen.query_one("#form-error", Static).content)

    drive(scenario, view_of(japan()))
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(d: Driver) -> None:
        await d.press(*(["down"] * 4), "y")
        assert d.app.clipboard.startswith("Reserve seats for the three")
        await d.press("up", "y")
        assert d.app.clipboard == "Buy the rail pass"

    drive(scenario, view_of(japan()))


def test_gossip_log_goes_to_the_task() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("l")
        assert d.screen == "GossipLog"
        assert "ada proposed" in d.text()
        await d.press("g", "down", "enter")
        assert d.screen == "MainScreen"
        assert d.app.main.plan_tree.key == ident("fares")
        await d.press("l", "escape")
        assert d.screen == "MainScreen"

    drive(scenario, view_of(japan()))


def test_gossip_log_goes_to_a_task_that_the_filter_hides() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("slash", *"kyoto", "enter", "l", "up", "enter")
        task = d.app.main.plan_tree.chosen()
        assert task is not None and task.title == "Food"
        assert not d.app.main.plan_tree.filter
        assert d.toasts() == []

    drive(scenario, view_of(japan()))


def test_palette_has_every_command_and_the_other_plans() -> None:
    async def scenario(d: Driver) -> None:
        for key in ("colon", "ctrl+p"):
            await d.press(key)
            assert d.screen == "Palette"
            await d.press("escape")
        titles = {entry.title for entry in SwarmCommands(d.app.main)._entries()}
        assert all(a.help in titles for a in ACTIONS if a.palette and a.name != "palette")
        await d.press("colon", *"other")
        await d.until(lambda: "[/other]" in d.text())
        await d.press("enter")
        await d.until(lambda: bool(d.swarm.asked))
        assert d.swarm.asked == [("show_plan", ident("other"))]

    plan = japan()
    drive(scenario, view_of(plan, plans=((ident("other"), "[/other] [b]plan"), (plan.id, plan.title))))


def test_a_plan_of_an_earlier_run_is_told_of_and_taken_up_from_the_palette() -> None:
    async def scenario(d: Driver) -> None:
        assert "2 plans, press : to choose" in d.text()
        await d.press("colon", *"left")
        await d.until(lambda: "Take up the plan of 2026-01-01 14:02: [/left] behind" in d.text())
        await d.press("enter")
        await d.until(lambda: bool(d.swarm.asked))
        assert d.swarm.asked == [("show_plan", ident("left"))]

    drive(scenario, view_of(japan(), kept=(KeptPlan(ident("left"), "[/left] behind", NOW),)))


def test_help_lists_every_key() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("question_mark")
        assert d.screen == "Help"
        assert "Give the swarm a new goal" in d.text()
        await d.press("G")
        assert "Letters of agents" in d.text()
        await d.press("escape")
        assert d.screen == "MainScreen"

    drive(scenario, view_of(japan()), NARROW)


def test_the_help_is_not_cut_in_the_smallest_window() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("question_mark")
        seen = d.text()
        for _ in range(20):
            await d.press("pagedown")
            seen += d.text()
        words = set(seen.split())
        for action in ACTIONS:
            assert set(action.help.split()) <= words, action.help

    drive(scenario, view_of(japan()), SMALLEST)


def test_the_help_is_a_line_a_key_in_80_columns() -> None:
    room = 80 - len("│ │ ") - len(" ▄ │  ")
    assert len(help_lines(Keys(), room)) == len(help_lines(Keys(), 200))


def test_suspend(monkeypatch: pytest.MonkeyPatch) -> None:
    suspended: list[bool] = []
    monkeypatch.setattr(SwarmApp, "action_suspend_process", lambda self: suspended.append(True))

    async def scenario(d: Driver) -> None:
        await d.press("ctrl+z")
        assert suspended == [True]
        await d.press("n", "x", "ctrl+z")  # in an entry it takes back what was typed
        assert suspended == [True]

    drive(scenario, view_of(japan()))


def test_quit_asks_while_agents_work() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("q")
        assert d.screen == "QuitConfirm"
        await d.press("n")
        assert d.app._exit is False
        await d.press("q", "y")
        await d.until(lambda: d.app._exit)

    app = drive(scenario, view_of(japan()))
    assert app.return_code == 0
    assert app.swarm.stopped  # type: ignore[attr-defined]


def test_quit_at_once_when_nobody_works() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("q")

    assert drive(scenario, view_of(japan(), agents=())).return_code == 0


def test_ctrl_c_asks_and_the_second_quits() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("ctrl+c")
        assert d.screen == "QuitConfirm"
        await d.press("ctrl+c")

    assert drive(scenario, view_of(japan())).return_code == 130


def test_keys_do_nothing_harmful_without_a_plan() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("escape")
        for key in ("a", "v", "r", "i", "Q", "w", "p", "y", "x", "X", "f", "l", "escape", "space", "enter", "1"):
            await d.press(key)
        assert d.swarm.asked == []
        assert d.screen == "MainScreen"

    drive(scenario, swarm=FakeSwarm())


def test_a_task_without_a_plan_around_it_is_left_out() -> None:
    async def scenario(d: Driver) -> None:
        assert "alone" in d.text()

    drive(
        scenario, view_of(plan_of([task("alone", parent=None, depth=0, children=(ident("missing"), ident("alone")))]))
    )
