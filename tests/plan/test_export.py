"""The exported document: whatever people, peers and models wrote, its structure is the tree's."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from swarmtui.plan.export import to_json, to_markdown
from swarmtui.plan.markdown import block, inline
from swarmtui.plan.ops import Policy
from swarmtui.plan.state import State
from swarmtui.plan.views import DraftView, PlanView, Stall, TaskView, VoteView

COMMONMARK = MarkdownIt("commonmark")

NASTY = [
    "# Heading",
    "Heading\n===",
    "Heading\n---",
    "```python\nprint('no end')",
    "~~~\n# in code\n```\n~~~~",
    "- a\n  - b\n    - c\n1. d\n   # not a heading",
    "<div>\n# x\n</div>",
    "<!-- never closed",
    "<script>alert(1)</script>",
    "[click](javascript:alert(1)) ![i](x) [a]: b",
    "`open\n# x `` ` ``` y ```",
    "> quote\n> # in quote",
    "***\n___\n- - -",
    "\\",
    "a\\`b`c`",
    "\x1b[31mred\x1b[0m\x07\x00",
    "one\u2028# two\x0b# three\r# four",
    "    # indented\n\t# tab",
    "- # heading in item\n- ```\n- x",
    "1)\n2. \n- \n+",
    "| a | b |\n|---|---|\n| # | # |",
    "\u202etxet\u202c [/foo] \U0001f600 ünï",
    "\ud800",
    "*" * 40,
    "-",
    "* * # x",
    "a\n    b\n=",
]
FRAGMENTS = st.one_of(st.sampled_from(NASTY), st.text(max_size=40), st.text("#=-*_`~>[]()<!&|\\ \t\n1.)a", max_size=40))
TEXTS = st.lists(FRAGMENTS, max_size=5).map("\n".join)


@dataclass
class Agent:
    name: str
    role: str = "scorer"
    model: str = "scripted"
    ops: int = 3


def task(number: int, parent: int | None = None, children: tuple[int, ...] = (), **fields: object) -> TaskView:
    values: dict[str, object] = {
        "id": bytes([number]) * 32,
        "parent": None if parent is None else bytes([parent]) * 32,
        "depth": 0 if parent is None else 1 if parent == 0 else 2,
        "title": f"Task {number}",
        "detail": "",
        "state": State.DONE,
        "branch": bool(children),
        "children": tuple(bytes([child]) * 32 for child in children),
        "stalled": None,
        "status": "done",
        "holder": "",
        "since": 0.0,
        "output": "" if children else f"Result {number}",
        "result_by": "cleo",
        "needs": "write",
        "after": (),
        "notes": (),
        "drafts": (),
        "history": ((1_700_000_000.0, f"cleo finished “Task {number}”"),),
    }
    return TaskView(**{**values, **fields})  # type: ignore[arg-type]


def plan(*tasks: TaskView, **fields: object) -> PlanView:
    values: dict[str, object] = {
        "id": bytes(32),
        "title": "Plan a trip",
        "detail": "",
        "operator": "you",
        "mine": True,
        "policy": Policy(),
        "paused": False,
        "done": True,
        "stalled": (),
        "counts": {"leaves": 3, "done": 3},
        "root": bytes(32),
        "tasks": {t.id: t for t in tasks},
        "started": 1_700_000_000.0,
    }
    return PlanView(**{**values, **fields})  # type: ignore[arg-type]


def draft(text: str = "by place") -> DraftView:
    vote = VoteView(scorer=text, approve=True, specific=71, distinct=80, complete=64, critique=text, at=1_700_000_100.0)
    return DraftView(
        id=b"d" * 32,
        author=text,
        angle=text,
        rationale=text,
        steps=(text, "Second"),
        refines=False,
        mark=71.7,
        approvals=1,
        votes=(vote,),
        accepted=True,
        vetoed=False,
        at=1_700_000_050.0,
    )


def tree(text: str = "words", title: str = "Title") -> PlanView:
    """A root with two children, the first of them a branch; the text in every place where text can stand."""
    spots = {"detail": text, "output": text, "notes": (text,), "after": (title,), "title": title}
    return plan(
        task(0, children=(1, 2), output=text, drafts=(draft(text),), history=((5.0, text),), title=title),
        task(1, 0, children=(3, 4), **spots),
        task(2, 0, **spots),
        task(3, 1, **spots, stalled=Stall(text, "press {add_scorer}")),
        task(4, 1, **spots, state=State.READY),
        title=title,
        detail=text,
        operator=text,
        stalled=(Stall(text, "press {add_scorer}"),),
    )


def headings(markdown: str) -> list[tuple[str, str]]:
    tokens = COMMONMARK.parse(markdown)
    return [(token.tag, shown(tokens[i + 1])) for i, token in enumerate(tokens) if token.type == "heading_open"]


def shown(token: Token) -> str:
    return "".join(child.content for child in token.children or () if child.type in ("text", "text_special"))


def kinds(markdown: str) -> set[str]:
    found = set()
    for token in COMMONMARK.parse(markdown):
        found.add(token.type)
        found.update(child.type for child in token.children or ())
    return found


def expected(first: str = "The finished plan") -> list[str]:
    return ["h1", *(["h2"] if first else []), "h2", "h3", "h4", "h4", "h3", "h2"]


@given(TEXTS, TEXTS)
def test_headings_are_the_trees_whatever_anyone_wrote(text: str, title: str) -> None:
    markdown = to_markdown(tree(text, title), agents=[Agent(text)])
    found = headings(markdown)
    assert [tag for tag, _ in found] == expected(text)
    assert found[-1] == ("h2", "How this plan was decided")
    assert [words.split(" ")[0] for tag, words in found if tag in ("h3", "h4")] == ["1", "1.1", "1.2", "2"]


@given(TEXTS, TEXTS)
def test_nothing_anyone_wrote_becomes_html_a_link_or_a_picture(text: str, title: str) -> None:
    for checklist in (False, True):
        markdown = to_markdown(tree(text, title), agents=[Agent(text)], checklist=checklist)
        assert not kinds(markdown) & {"html_block", "html_inline", "link_open", "image", "hr"}
        assert not any(ord(char) < 32 and char != "\n" for char in markdown)
        markdown.encode("utf-8")


@given(TEXTS, TEXTS)
def test_a_checklist_keeps_its_nesting(text: str, title: str) -> None:
    markdown = to_markdown(tree(text, title), checklist=True, appendix=False)
    assert [tag for tag, _ in headings(markdown)] == expected(text)[: 3 if text else 2]
    depth, boxes = 0, []
    for token in COMMONMARK.parse(markdown):
        depth += token.nesting if token.type.startswith("bullet_list") else 0
        if token.type == "inline" and token.content.startswith(("[x]", "[ ]")):
            boxes.append((depth, token.content[:3]))
    assert boxes == [(1, "[x]"), (2, "[x]"), (2, "[ ]"), (1, "[x]")]


@given(TEXTS)
def test_a_block_changes_nothing_around_it(text: str) -> None:
    lines = block(text)
    markdown = "\n".join(["# before", "", *lines, "", "# after"])
    found = headings(markdown)
    assert found == [("h1", "before"), ("h1", "after")]
    assert not lines or (lines[0] and lines[-1])


@given(TEXTS)
def test_an_inline_text_shows_all_of_its_words(text: str) -> None:
    line = inline(text)
    assert "\n" not in line
    tokens = COMMONMARK.parse(f"## 1 {line}")
    assert tokens[1].children is not None
    assert {child.type for child in tokens[1].children} <= {"text", "text_special"}


def test_what_a_result_may_hold_is_kept() -> None:
    text = "Intro *with* `code <b>`.\n\n- one\n  - two\n1. first\n2. second\n\n```sh\nls # all\n```\nEnd"
    assert "\n".join(block(text)) == (
        "Intro *with* `code <b>`.\n\n- one\n  - two\n1. first\n2. second\n\n```sh\nls # all\n```\n\nEnd"
    )


def test_headings_in_results_are_demoted_to_bold_lines() -> None:
    assert block("## Day 1: *Kyoto* ##\ntext\n\nDay 2\n-----\nmore") == [
        "**Day 1: Kyoto**", "", "text", "", "**Day 2**", "", "more",
    ]  # fmt: skip


def test_a_fence_longer_than_any_inside_closes_what_was_left_open() -> None:
    assert block("~~~\n```` x\nend") == ["`````", "```` x", "end", "`````"]


def test_the_document_tells_what_is_open_and_who_decided() -> None:
    markdown = to_markdown(tree("words"), agents=[Agent("ada", "decomposer", "SmolLM2", 12)])
    assert markdown.count("**Stalled:** words\n") == 2
    assert "**Open:** nobody has claimed it yet." in markdown
    assert "*After: Title.*" in markdown
    assert "by words: **accepted**, mark 72, 1 approval" in markdown
    assert "- ada: decomposer, SmolLM2, 12 ops" in markdown
    assert "How this plan" not in to_markdown(tree("words"), appendix=False)


def test_an_unsplit_plan_is_a_document_too() -> None:
    markdown = to_markdown(plan(task(0, state=State.OPEN, branch=True, output=""), done=False), appendix=False)
    assert markdown.startswith("# Plan a trip\n\n*Unfinished: ")
    assert "**Open:** nobody has drafted its steps yet." in markdown


def test_times_beyond_every_calendar_are_no_trouble() -> None:
    assert "at no real time" in to_markdown(plan(task(0), started=1e20))


def test_json_holds_the_same_facts() -> None:
    facts = json.loads(to_json(tree("wörds \ud800"), [Agent("ada")]))
    assert facts["format"] == "swarmtui/plan/1"
    assert [t["title"] for t in facts["tasks"]] == ["Title"] * 5
    assert facts["root"] == facts["tasks"][0]["id"] == "00" * 32
    assert facts["tasks"][0]["drafts"][0]["votes"][0]["specific"] == 71
    assert facts["tasks"][0]["history"] == [{"at": 5.0, "text": "wörds ?"}]
    assert facts["tasks"][4]["state"] == "done"
    assert facts["stalled"] == ["wörds ?"] and facts["tasks"][0]["stalled"] == ""
    assert [t["stalled"] for t in facts["tasks"] if t["stalled"]] == ["wörds ?"]
    assert facts["policy"]["need"] == 2
    assert facts["agents"] == [{"name": "ada", "role": "scorer", "model": "scripted", "ops": 3}]


@pytest.mark.parametrize("depth", range(8))
def test_tasks_deeper_than_markdowns_headings_stay_at_the_deepest(depth: int) -> None:
    child = task(1, 0)
    child = TaskView(**{**{n: getattr(child, n) for n in child.__struct_fields__}, "depth": depth + 1})
    markdown = to_markdown(plan(task(0, children=(1,)), child), appendix=False)
    assert headings(markdown)[-1][0] == f"h{min(depth + 3, 6)}"
