"""What the screen shows: sizes, hostile texts, changes in place."""

from __future__ import annotations

import msgspec
import pytest
from rich.cells import cell_len
from textual.color import Color

from swarmtui.plan.state import State
from swarmtui.ui.app import SwarmApp
from swarmtui.ui.screens.main import SMALLEST
from swarmtui.ui.states import LOOKS
from swarmtui.ui.widgets.detail import TABS
from swarmtui.view import Stall

from .driving import NARROW, TINY, WIDE, Driver, drive
from .sample import FakeSwarm, agent, crew, draft, ident, japan, nothing, notice, plan_of, sayings, task, view_of, vote

HOSTILE = {
    "braces": "{quit} {0} {nobody.__class__} {{}} {",
    "markup": "[/foo] [red]boo[/] [@click=app.quit]x[/] [link=file:///etc/passwd]y",
    "escapes": "\x1b[2J\x1b]0;owned\x07\x1b[31mred\x1b[0m \x9b5n \x08\x08\x00 end",
    "right to left": "تخطيط رحلة \u202eevil\u202c إلى اليابان",
    "emoji": "👩‍👩‍👧‍👦🗾✈️🏴󠁧󠁢󠁥󠁮󠁧󠁿" * 40,
    "wide": "旅行の計画を立てる" * 60,
    "long": "x" * 10_000,
    "lines": "a\nb\r\nc\u2028d\x0be\tf" * 50,
    "combining": "Z" + "\u0300\u0301\u0302" * 60 + "algo",
    "surrogate": "caf\udce9 \ufeff\u2066x\u2069",
}


def _hostile_view(text: str) -> object:
    tasks = [
        task("root", State.ACCEPTED, title=text, parent=None, depth=0, branch=True, children=(ident("a"), ident("b"))),
        task(
            "a",
            State.CLAIMED,
            title=text,
            detail=text,
            holder=text,
            status=text,
            since=1.0,
            notes=(text,),
            after=(text,),
            history=((1.0, text),),
            needs=text,
            output=text,
            result_by=text,
            branch=True,
            drafts=(
                draft(text, text, (text, text), rationale=text, mark=50.0, votes=(vote(text, True, (1, 2, 3), text),)),
            ),
        ),
        task("b", State.DRAFT, title=text, stalled=Stall(text, "press {add_scorer}")),
    ]
    plan = plan_of(tasks, title=text, operator=text, stalled=(Stall(text, "press {add_scorer}"),))
    agents = (agent(text, "executor", subject=text, doing=text, model=text, skills=(text,), tail=text, fault=text),)
    agents += (agent(f"{text}2", "scorer", trouble=text),)
    lines = tuple(msgspec.structs.replace(line, text=text) for line in sayings())
    return view_of(
        plan, agents=agents, gossip=lines, notices=(notice(text), notice(text, "error")), plans=((plan.id, text),)
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_shown_and_do_nothing(name: str) -> None:
    text = HOSTILE[name]

    async def scenario(d: Driver) -> None:
        seen = [d.text()]
        await d.press("down", "3")
        for _ in range(5):
            await d.press("right")
            seen.append(d.text())
        for key in ("2", "l", "escape", "w", "escape", "question_mark", "escape", "1", "i", "escape"):
            await d.press(key)
            seen.append(d.text())
        d.app.say(text)
        await d.settle()
        await d.press("2", "x")
        seen.append(d.text())
        for shown in seen:
            for line in shown.split("\n"):
                assert cell_len(line) == WIDE[0]
                assert not any(c < " " or "\x7f" <= c <= "\x9f" or c in "\u202a\u202b\u202d\u202e\u2066" for c in line)

    drive(scenario, _hostile_view(text))  # type: ignore[arg-type]


def test_markup_is_shown_as_it_was_written() -> None:
    async def scenario(d: Driver) -> None:
        assert "[/foo] [red]boo[/]" in d.text()

    drive(scenario, _hostile_view(HOSTILE["markup"]))  # type: ignore[arg-type]


def test_wide_screen_shows_all_four_panels() -> None:
    async def scenario(d: Driver) -> None:
        shown = d.text()
        for words in (
            "Plan a two-week trip to Japan",
            "11/27 done · 4 working · 2 voting",
            "quorum 2 of 3",
            "1 machine",
            "1 Plan",
            "2 Agents",
            "3 Detail",
            "4 Gossip",
            "3.1 ops/s",
            "◐ Compare fares",
            "cleo · 41 s",
            "! Temples",
            "✔ Reserve seats",
            "○ Buy the rail pass",
            "◇ Food",
            "2 drafts · 1 of 2 votes",
            "14 tok/s",
            "elsewhere",
            "✔ in step",
            "3f9a12c4",
            "q quit",
        ):
            assert words in shown, words

    drive(scenario, view_of(japan()))


def test_a_plan_that_is_being_drafted_doesnt_look_idle() -> None:
    new = task("root", State.OPEN, title="Plan a party", parent=None, depth=0, branch=True, status="no draft yet")
    plan = plan_of([new], counts=dict.fromkeys(("leaves", "done", "working", "voting", "ready", "failed"), 0))

    async def scenario(d: Driver) -> None:
        assert " no draft yet   quorum" in d.text()
        assert "0/0" not in d.text()
        await d.change(agents=(agent("ada", "decomposer", doing="drafting", subject="Plan a party"),))
        assert " 1 drafting   quorum" in d.text()

    drive(scenario, view_of(plan, agents=()))


def test_narrow_screen_shows_one_panel_at_a_time() -> None:
    async def scenario(d: Driver) -> None:
        assert "Compare fares" in d.text()
        assert "judging" not in d.text()
        await d.press("2")
        assert "judging" in d.text()
        assert "Buy the rail pass" not in d.text()
        await d.press("1", "3")
        assert "History" in d.text()
        assert "q quit" in d.text()
        await d.pilot.click("#panel-tabs", offset=(3, 0))
        await d.settle()
        assert "Buy the rail pass" in d.text()

    drive(scenario, view_of(japan()), NARROW)


def test_tiny_screen_says_so_and_grows_back() -> None:
    async def scenario(d: Driver) -> None:
        assert "needs 60×16" in d.text()
        assert "50×12" in d.text()
        await d.pilot.resize_terminal(*NARROW)
        await d.settle()
        assert "Compare fares" in d.text()

    drive(scenario, view_of(japan()), TINY)


def test_a_window_that_was_small_for_a_while_goes_on_where_it_was() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("2", "j", "Q")
        for size in (TINY, NARROW):
            await d.pilot.resize_terminal(*size)
            await d.settle()
        assert "needs 60×16" not in d.text()
        await d.press("escape")
        assert d.app.main.focused is d.app.main.agents
        for size in (TINY, WIDE):
            await d.pilot.resize_terminal(*size)
            await d.settle()
        await d.press("p")
        assert d.swarm.asked == [("pause_agent", "12D3KooWbob", True)]

    drive(scenario, view_of(japan()))


def test_labels_and_warnings() -> None:
    async def scenario(d: Driver) -> None:
        shown = d.text()
        for words in ("scripted", "no secret", "‖ paused", "! Nobody scores", "! the disk is full", "and 3 more"):
            assert words in shown, words
        await d.change(notices=(), plan=japan(), scripted=False, secured=True)
        shown = d.text()
        assert "the disk is full" not in shown
        assert "scripted" not in shown

    stall = Stall("Nobody scores", "press {add_scorer} to add a scorer")
    plan = plan_of(list(japan().tasks.values()), paused=True, stalled=(stall,))
    notices = (*map(notice, "abcdefgh"), notice("the disk is full", "error"))
    drive(scenario, view_of(plan, scripted=True, secured=False, machines=2, notices=notices))


@pytest.mark.parametrize("size", [WIDE, NARROW, SMALLEST])
def test_a_notice_is_shown_with_its_remedy_or_not_at_all(size: tuple[int, int]) -> None:
    first = "The journal can't be written: " + "its disk is full, " * 6 + "so free some space."
    second = "Keys can't be kept: " + "their disk is full, " * 6 + "so free some, too."

    async def scenario(d: Driver) -> None:
        shown = " ".join(d.text().split())
        assert "so free some space." in shown
        assert ("! Keys" in shown) == ("so free some, too." in shown) == (size == WIDE)
        assert ("and 1 more" in shown) == (size != WIDE)

    drive(scenario, view_of(japan(), notices=(notice(first), notice(second))), size)


def test_tabs_marks_and_angles_are_whole_in_100_columns() -> None:
    async def scenario(d: Driver) -> None:
        await d.press(*["down"] * 5, "3", "right")
        lines = d.text().splitlines()
        tabs = next(line for line in lines if "Drafts 2" in line)
        assert all(name in tabs for name in ("Task", "Votes 3", "Result", "History"))
        assert 'ada, "by place"' in d.text() and " 72 1/2 ✔" in d.text()
        await d.press("right")
        assert "71 ·  80 ·  64" in d.text()

    drive(scenario, view_of(japan()), (100, 30))


def test_the_tabs_can_be_clicked_however_close_they_stand() -> None:
    async def scenario(d: Driver) -> None:
        for name in ("History", "Votes", "Task"):
            line = next(line for line in d.text().splitlines() if "Drafts 2" in line)
            bar = d.app.main.detail.tabs
            await d.pilot.click(bar, offset=(line.index(name) - bar.region.x, 0))
            await d.settle()
            assert TABS[d.app.main.detail.tab] == name

    async def chosen(d: Driver) -> None:
        await d.press(*["down"] * 5)
        await scenario(d)

    for size in ((100, 30), WIDE):
        drive(chosen, view_of(japan()), size)


def test_the_filter_leaves_the_plan_where_it_is() -> None:
    async def scenario(d: Driver) -> None:
        before = d.app.main.plan_tree.region
        await d.press("slash")
        after = d.app.main.plan_tree.region
        assert (after.x, after.y, after.width) == (before.x, before.y, before.width)

    drive(scenario, view_of(japan()))


def test_where_others_can_join_is_shown_and_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "/ip4/192.0.2.7/tcp/4001/p2p/12D3KooWyou"
    copied: list[str] = []
    monkeypatch.setattr(SwarmApp, "copy_to_clipboard", lambda self, text: copied.append(text))

    async def scenario(d: Driver) -> None:
        await d.press("2", "g")
        assert "Others join with J, or with --join and:" in d.text() and f"  {address} " in d.text()
        await d.press("y")
        assert copied == [address]

    drive(scenario, view_of(japan(), agents=(agent("you", "operator", addresses=(address,)), *crew())))


def test_the_end_of_a_plan_is_told_once() -> None:
    async def scenario(d: Driver) -> None:
        done = plan_of(list(japan().tasks.values()), done=True)
        await d.change(plan=done)
        await d.change(plan=done)
        assert d.toasts() == ["The plan is done. Press w to export it."]
        assert "✔ done" in d.text()

    drive(scenario, view_of(japan()))


def test_toasts_leave_room_for_what_they_stand_over() -> None:
    async def scenario(d: Driver) -> None:
        for count in range(20):
            d.app.say(f"agent {count} has joined")
        await d.settle()
        assert d.toasts() == [f"agent {count} has joined" for count in range(16, 20)]
        assert "agent 15" not in d.text()
        assert "agent 19" in d.text()

    drive(scenario, view_of(japan()))


def test_who_is_gone_does_nothing_any_more() -> None:
    async def scenario(d: Driver) -> None:
        ada = crew()[0]
        gone = msgspec.structs.replace(ada, state="gone")
        await d.press("2")
        assert d.text().count("Food in Kyoto") == 2, "in the list and in the detail"
        await d.change(agents=(gone, *crew()[1:]))
        assert "Food in Kyoto" not in d.text()
        assert "It writes" not in d.text()
        assert "lived" in d.text()

    drive(scenario, view_of(japan()))


def test_what_went_wrong_is_told_while_an_agent_rests_and_kept_in_its_detail() -> None:
    wrong = "no answer: start the server"

    async def scenario(d: Driver) -> None:
        await d.press("2")
        assert d.text().count(wrong) == 2, "in the list and in the detail"
        await d.change(agents=(agent("ada", "decomposer", doing="drafting", subject="Plan a party", trouble=wrong),))
        assert "Plan a party" in d.text()
        assert d.text().count(wrong) == 1

    resting = agent("ada", "decomposer", doing="waiting", subject="for a better moment", trouble=wrong)
    drive(scenario, view_of(japan(), agents=(resting,)))


def _forest(count: int, first: int = 0) -> object:
    names = [f"task {i}" for i in range(first, count)]
    root = task("root", State.ACCEPTED, parent=None, depth=0, branch=True, children=tuple(ident(n) for n in names))
    return plan_of([root, *(task(name) for name in names)])


def test_the_cursor_and_its_row_stay_when_lines_come_and_go() -> None:
    async def scenario(d: Driver) -> None:
        tree = d.app.main.plan_tree
        await d.press("G", *(["up"] * 5))
        key, row = tree.key, tree.cursor - tree.scroll_offset.y
        await d.change(plan=_forest(120, first=30))
        assert (tree.key, tree.cursor - tree.scroll_offset.y) == (key, row)
        await d.change(plan=_forest(160, first=10))
        assert (tree.key, tree.cursor - tree.scroll_offset.y) == (key, row)

    drive(scenario, view_of(_forest(120)))  # type: ignore[arg-type]


def test_a_cursor_whose_line_goes_stands_on_the_line_above() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("down", "down", "down")
        tasks = [t for t in japan().tasks.values() if t.id != ident("pass")]
        await d.change(plan=plan_of(tasks))
        assert d.app.main.plan_tree.key == ident("fares")

    drive(scenario, view_of(japan()))


def test_the_scroll_of_the_detail_stays_while_the_result_grows() -> None:
    async def scenario(d: Driver) -> None:
        page = d.app.main.detail.page
        await d.press("3", "right", "right", "right", "ctrl+d", "j", "j")
        before = page.scroll_offset.y
        assert before > 2
        await d.change(plan=plan_of([task("root", State.DONE, parent=None, depth=0, output="line\n" * 140)]))
        assert page.scroll_offset.y == before

    drive(scenario, view_of(plan_of([task("root", State.DONE, parent=None, depth=0, output="line\n" * 100)])))


def test_the_detail_of_an_agent_follows_what_it_writes() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("2")
        assert "It writes:" in d.text()
        await d.change(agents=(agent("ada", "decomposer", doing="drafting", tail="and then the markets"),))
        assert "and then the markets" in d.text()
        await d.press("1")
        assert "and then the markets" not in d.text()

    drive(scenario, view_of(japan()))


def test_a_great_plan_is_shown() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("G")
        assert "task 19999" in d.text()

    drive(scenario, view_of(_forest(20_000)))  # type: ignore[arg-type]


def test_empty_swarm_says_what_to_do() -> None:
    async def scenario(d: Driver) -> None:
        await d.press("escape")
        shown = d.text()
        for words in ("press z and give the swarm a goal", "press d for a decomposer", "Nothing has been said yet"):
            assert words in shown, words

    drive(scenario, nothing(), keys={"new_goal": "z"})


def test_every_state_has_its_own_glyph_and_word() -> None:
    assert len({face.glyph for face in LOOKS.values()}) == len(LOOKS) == len(State)
    assert len({face.word for face in LOOKS.values()}) == len(LOOKS)
    assert all(cell_len(face.glyph) == 1 for face in LOOKS.values())


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(d: Driver) -> None:
        for strip in d.app.screen._compositor.render_strips():
            for segment in strip.apply_filter(d.app._filters[0], Color(0, 0, 0)) if d.app._filters else []:
                for colour in (segment.style.color, segment.style.bgcolor) if segment.style else ():
                    if colour is not None and colour.triplet is not None:
                        assert colour.triplet.red == colour.triplet.green == colour.triplet.blue
        assert d.app.no_color

    drive(scenario, view_of(japan()))


@pytest.mark.parametrize(
    ("background", "theme"), [("15;0", "swarmtui-dark"), ("0;15", "swarmtui-light"), ("", "swarmtui-dark")]
)
def test_colours_fit_the_terminal(background: str, theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORFGBG", background)

    async def scenario(d: Driver) -> None:
        assert d.app.theme == theme
        d.app.change_colours()
        await d.settle()
        assert d.app.theme != theme

    drive(scenario, view_of(japan()))


def test_a_command_that_fails_says_why_and_what_to_do() -> None:
    class Refused(Exception):
        remedy = "Close another program."

    swarm = FakeSwarm(view_of(japan()))
    swarm.refuse = Refused("No [/free] port.")

    async def scenario(d: Driver) -> None:
        await d.press("d")
        assert d.toasts() == ["No [/free] port.\nClose another program."]

    drive(scenario, swarm=swarm)
