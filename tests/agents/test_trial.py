"""Files of splits, and the table of how a judge did on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from swarmtui.agents import AgentSettings
from swarmtui.agents.judge import Judge
from swarmtui.agents.judging import Verdict
from swarmtui.agents.settings import default_prompts
from swarmtui.agents.trial import (
    CHECKED,
    LIKELIHOOD,
    WRITTEN,
    Bad,
    Marked,
    Numbered,
    Remembered,
    Row,
    Split,
    can_be_read,
    mark,
    read,
    tabulate,
)
from swarmtui.llm.model import Likelihood, ModelError, Reply, Request
from swarmtui.llm.scripted import ScriptedModel
from swarmtui.plan.ops import Marks
from tests.agents import making

GOOD_LINE = b'{"goal": "Bake  bread", "flaw": null, "steps": ["Knead\\nthe dough", "Heat the oven"], "language": "en"}'


class Readable:
    """Gives texts that share words with the prefix's first line a better likelihood, and counts what it weighs."""

    name = "readable 7B"

    def __init__(self) -> None:
        self.weighed: list[tuple[str, str]] = []
        self.asked: list[Request] = []

    async def likelihood(self, request: Likelihood) -> list[float]:
        await trio.lowlevel.checkpoint()
        self.weighed += [(request.prefix, text) for text in request.continuations]
        task = set(request.prefix.split("\n")[0].casefold().split())
        return [-6.0 + 2 * bool(task & set(text.casefold().split()) - {"the", "a"}) for text in request.continuations]

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        await trio.lowlevel.checkpoint()
        self.asked.append(request)
        value = {"specific": 70, "distinct": 90, "complete": 200, "critique": "Say when."}
        return Reply(text="", value=value)


class Knowing(Readable):
    """Knows which steps belong to which task, so that it's trusted."""

    def __init__(self, own: dict[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._own = dict(default_prompts().scorer.neutral[0].steps) | own

    async def likelihood(self, request: Likelihood) -> list[float]:
        await super().likelihood(request)
        task = request.prefix.split("\n")[0].removeprefix("Plan: ")
        if task == "Steps:":
            return [-5.8 for _ in request.continuations]
        return [-5.0 if text in self._own.get(task, ()) else -6.5 for text in request.continuations]


def test_a_good_line_is_read_with_its_number() -> None:
    found = list(read([b"\n", b"  \n", GOOD_LINE]))
    assert found == [Numbered(3, Split("Bake bread", ("Knead the dough", "Heat the oven")))]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"nope", "JSON is malformed"),
        (b"[1]", "Expected `object`"),
        (b'{"goal": "x"}', "missing required field `steps`"),
        (b'{"goal": "x", "steps": []}', "length >= 1"),
        (b'{"goal": "x", "steps": "abc"}', "Expected `array`"),
        (b'{"goal": 3, "steps": ["a"]}', "Expected `str`"),
        (b'{"goal": "", "steps": ["a"]}', "length >= 1"),
        (b'{"goal": " ", "steps": ["a"]}', "the goal is blank"),
        (b'{"goal": "x", "steps": ["a", "\\u0007 "]}', "step 2 is blank"),
        (b'{"goal": "x", "flaw": 7, "steps": ["a"]}', "flaw"),
        (b'{"goal": "x", "flaw": "", "steps": ["a"]}', "flaw"),
        (b'{"goal": "%s", "steps": ["a"]}' % (b"x" * 201), "length <= 200"),
        (b'{"goal": "x", "steps": [%s"a"]}' % (b'"a",' * 16), "length <= 16"),
        (b'{"goal": "x", "steps": ["a"], "more": "%s"}' % (b"x" * 70_000), "longer than"),
        (b'{"goal": "\xff", "steps": ["a"]}', "Invalid UTF-8"),
    ],
)
def test_a_bad_line_is_named_and_the_next_is_read(line: bytes, why: str) -> None:
    bad, good = read([line, GOOD_LINE])
    assert isinstance(bad, Bad)
    assert bad.line == 1
    assert why in bad.why
    assert isinstance(good, Numbered)


def marked(line: int, goal: str, flaw: str | None, mean: int) -> Marked:
    marks = Marks(specific=mean, distinct=mean, complete=mean)
    return Marked(line, Split(goal, ("a", "b"), flaw), {LIKELIHOOD: Verdict(marks, "")})


def test_pairs_are_made_within_a_goal_and_a_tie_is_no_success() -> None:
    found = [
        marked(1, "x", None, 70),
        marked(2, "x", "vague", 40),
        marked(3, "x", "off-topic", 70),
        marked(4, "y", None, 50),
        marked(5, "y", "vague", 60),
        marked(6, "z", "vague", 10),
    ]
    rows = tabulate(found, LIKELIHOOD, 60)
    assert [(row.flaw, row.splits, row.pairs, row.ranked, row.tied, row.passing) for row in rows] == [
        ("none", 2, 0, 0, 0, 1),
        ("vague", 3, 2, 1, 0, 1),
        ("off-topic", 1, 1, 0, 1, 1),
        ("all flaws", 4, 3, 1, 1, 2),
    ]
    assert rows[0] == Row("none", 2, 0, 0, 0, 1, 60.0, 60.0, 60.0, 60.0)
    assert tabulate(found, WRITTEN, 60) == []


async def test_each_method_marks_a_split() -> None:
    judge = Judge(Readable(), AgentSettings(name="j"), None)
    split = Numbered(1, Split("Paint the fence", ("Sand the fence", "Buy a tin", "Buy a tin")))
    found = await mark(judge, split, [LIKELIHOOD, WRITTEN, CHECKED])
    assert set(found.verdicts) == {LIKELIHOOD, WRITTEN, CHECKED}
    assert found.verdicts[WRITTEN].marks == Marks(specific=70, distinct=90, complete=100)
    assert found.verdicts[CHECKED].marks.distinct < 60
    for method in (LIKELIHOOD, CHECKED):
        assert "Step 3 repeats step 2." in found.verdicts[method].critique


async def test_what_cannot_let_a_list_pass_is_not_asked() -> None:
    goal = "Open a small bakery"
    good = (
        "Choose a shop and sign the lease",
        "Get the food licence from the health office",
        "Buy ovens, mixers and shelving",
        "Hire two people and train them for a week",
    )
    model = Knowing({goal: good})
    judge = Judge(model, AgentSettings(), None)

    async def asked(steps: tuple[str, ...], pass_mark: float) -> tuple[bool, bool, float]:
        """Whether the list was asked for its cover, whether for twins, and the mark."""
        model.weighed.clear()
        verdict = await judge.read(goal, steps, pass_mark=pass_mark)
        prefixes = {prefix for prefix, _ in model.weighed}
        return (
            any(prefix.startswith("Steps:") for prefix in prefixes),
            any("In other words" in prefix for prefix in prefixes),
            verdict.marks.mean,
        )

    assert (await asked(good, 60))[:2] == (True, True)
    reached = (await asked(good, 60))[2]
    assert await asked(good, reached + 1) == (True, False, reached)
    assert (await asked(good, 101))[:2] == (False, False)
    stray = (*good[:2], "Tune the piano of the music school", "Feed the cows before sunrise")
    assert (await asked(stray, 60))[:2] == (False, False)


async def test_longer_lists_are_not_searched_for_repeats_in_other_words() -> None:
    goal = "Open a small bakery"
    steps = (
        "Choose a shop and sign the lease",
        "Get the food licence from the health office",
        "Buy ovens, mixers and shelving",
        "Hire two people and train them for a week",
        "Print labels with all allergens",
        "Compare the flour prices of four mills",
    )
    model = Knowing({goal: steps})
    for count, searched in ((5, True), (6, False)):
        model.weighed.clear()
        verdict = await Judge(model, AgentSettings(), None).read(goal, steps[:count])
        assert verdict.marks.mean >= 60
        assert any("In other words" in prefix for prefix, _ in model.weighed) is searched


async def test_what_was_weighed_is_remembered() -> None:
    model = Readable()
    remembered = Remembered(model)
    judge = Judge(remembered, AgentSettings(name="j"), None)
    steps = ("Sand the fence", "Buy a tin of paint", "Paint the boards")
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(judge.read, "Paint the fence", steps)
    assert len(model.weighed) == len(set(model.weighed))
    once = len(model.weighed)
    await judge.read("Paint the fence", (*steps[:2], "Get started"))
    assert 0 < len(model.weighed) - once < 20


async def test_a_model_without_likelihoods_is_noticed() -> None:
    assert await can_be_read(Judge(Readable(), AgentSettings(), None))
    scripted = Judge(ScriptedModel(), AgentSettings(), None)
    assert not await can_be_read(scripted)
    with pytest.raises(ModelError):
        await mark(scripted, Numbered(1, Split("x", ("a",))), [LIKELIHOOD])


async def test_a_model_that_was_away_is_read_again_and_one_without_likelihoods_is_asked_for_words() -> None:
    class Faulty(Readable):
        away = True
        readable = False

        async def likelihood(self, request: Likelihood) -> list[float]:
            if self.away or not self.readable:
                self.weighed.append((request.prefix, ""))
                raise ModelError("can't")
            return await super().likelihood(request)

        async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
            if self.away:
                raise ModelError("can't")
            return await super().generate(request, on_text)

    model, plan = Faulty(), making.plan()
    draft = making.draft(plan)
    judge = Judge(model, AgentSettings(), None)

    async def judged() -> Verdict:
        return await judge(plan, plan.root, draft, lambda _: None, 1)

    for _ in range(4):
        with pytest.raises(ModelError):
            await judged()
    model.away, model.readable = False, True
    await judged()
    assert [request.prompt for request in model.asked if "specific" in str(request.schema)] == []
    model.readable = False
    model.weighed.clear()
    for _ in range(4):
        assert (await judged()).marks.specific == 70
    assert len(model.weighed) == 2
