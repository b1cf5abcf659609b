"""How good the plans of a model are: the judge, drafts, results, time and tokens, as one Markdown table.

    python -m tests.benchmarks.quality [--model M] [--goals N] [--languages N] [--splits FILE] [--seed S]

Everything goes through the parts that a swarm is made of (drafter, judge, worker), with the policy of the `tiny`
preset and three rivals; only the network and the agents' timing are left out. docs/quality.md says what the rows mean.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import trio

from swarmtui.agents import AgentSettings, trial
from swarmtui.agents.drafting import Drafter, Order
from swarmtui.agents.drafts import Checks as DraftChecks
from swarmtui.agents.drafts import read_steps
from swarmtui.agents.judge import Judge
from swarmtui.agents.judging import EMPHASES
from swarmtui.agents.prompting import Angle
from swarmtui.agents.results import Checks as ResultChecks
from swarmtui.agents.results import left_out
from swarmtui.agents.tongues import is_foreign, language_of, script_of
from swarmtui.agents.work import Worker
from swarmtui.llm.model import ModelError, Request
from swarmtui.plan.ops import Policy, Proposal, Result
from swarmtui.plan.state import Draft, Plan
from swarmtui.swarm.errors import SwarmError
from tests.agents import making
from tests.benchmarks.quality_goals import Counted, Goal, content_words, goals, started, topics

SPLITS = Path(__file__).parent.parent / "data" / "splits_more.jsonl"
NEED = 2
"""Of three scorers."""
RIVALS = 3
LONG = 1_000
"""Tokens of an answer to a whole goal, at most."""
POLICY = Policy(need=NEED, of=3, rivals=RIVALS, rounds=1, fan_out=(2, 4), max_depth=1)


@dataclass(slots=True)
class Drafts:
    """What one way to a draft gave, a figure a goal."""

    name: str
    sound: list[bool] = field(default_factory=list)
    marks: list[float] = field(default_factory=list)
    topics: list[float] = field(default_factory=list)
    words: list[float] = field(default_factory=list)

    def row(self) -> list[str]:
        count = len(self.marks)
        return [
            self.name,
            f"{sum(self.sound)} of {count}",
            f"{fmean(self.marks):.0f}",
            f"{100 * fmean(self.topics):.0f} %",
            f"{fmean(self.words):.0f}",
        ]


@dataclass(slots=True)
class Results:
    """What became of the steps."""

    leaves: int = 0
    sound: int = 0
    failed: int = 0
    plans: int = 0
    whole: int = 0
    """Merges in which every part is found."""
    topics: list[float] = field(default_factory=list)
    words: list[float] = field(default_factory=list)
    unseen: list[float] = field(default_factory=list)
    """Topics of the goals that no prompt was tuned on."""
    alone: list[float] = field(default_factory=list)
    """Topics of one long answer to the goal, without a swarm."""
    repeated: list[float] = field(default_factory=list)
    """Topics of as many long answers as take the tokens that the leaves took."""


class Bench:
    """One run. `self.told` collects the lines of the report."""

    def __init__(self, model: Counted, seed: int) -> None:
        self.model = model
        self.settings = AgentSettings(name="bench")
        self.prompts = self.settings.prompts
        self.judge = Judge(model, self.settings, None)
        self.scorers = [Judge(model, self.settings, emphasis) for emphasis in EMPHASES]
        self._seed = seed
        self.ways = [
            Drafts(name)
            for name in ("one answer, as it came", "one draft", "best of 3 rivals by quorum", "after refinement")
        ]
        self.refined = 0
        self.results = Results()

    def seed(self) -> int:
        """Another one for every request."""
        self._seed += 1
        return self._seed

    async def goal(self, goal: Goal) -> None:
        """Draft, judge and do one goal."""
        plan = making.plan(POLICY, goal.title)
        self.model.first = None
        rivals = [await self.draft(plan, self.prompts.angles[number]) for number in range(RIVALS)]
        raw = [(step["title"], step["detail"]) for step in read_steps(self.model.first)][: POLICY.fan_out[1]]
        await self.note(self.ways[0], goal, plan, raw)
        await self.note(self.ways[1], goal, plan, said(rivals[0]))
        winner, accepted = await self.vote(plan, rivals)
        await self.note(self.ways[2], goal, plan, said(winner))
        if not accepted:
            self.refined += 1
            rivals.append(await self.draft(plan, self.prompts.angles[0], winner))
            winner, _ = await self.vote(plan, rivals)
        await self.note(self.ways[3], goal, plan, said(winner))
        await self.do(goal, plan, winner)

    async def draft(self, plan: Plan, angle: Angle, base: Draft | None = None) -> Draft:
        """Let a decomposer draft a split of the goal."""
        order = Order(plan, plan.root, angle, base)
        made = await Drafter(self.model, self.settings)(order, nobody, self.seed)
        return hand_in(plan, made, hlc=10 + len(plan.root.drafts))

    async def vote(self, plan: Plan, rivals: Sequence[Draft]) -> tuple[Draft, bool]:
        """The first rival with a quorum; without any, the one with the best mean mark."""
        means: list[float] = []
        first: Draft | None = None
        for rival in rivals:
            marks = []
            for number, scorer in enumerate(self.scorers):
                verdict = await scorer(plan, plan.root, rival, nobody, self.seed())
                marks.append(verdict.marks.mean)
                making.vote(rival, f"scorer{number}", round(verdict.marks.mean), critique=verdict.critique)
            means.append(fmean(marks))
            if first is None and sum(mark >= POLICY.pass_mark for mark in marks) >= NEED:
                first = rival
        return first or rivals[means.index(max(means))], first is not None

    async def note(self, way: Drafts, goal: Goal, plan: Plan, steps: Sequence[tuple[str, str]]) -> None:
        """Measure a draft."""
        titles = [title for title, _ in steps]
        checks = DraftChecks.of(plan, plan.root, self.prompts.angles[0], self.prompts)
        mark = await self.mark(goal, titles) if titles else 0.0
        text = " ".join(f"{title}. {detail}" for title, detail in steps)
        way.marks.append(mark)
        way.sound.append(not checks.faults(titles))
        way.topics.append(topics(goal, text))
        way.words.append(len(content_words(text) - content_words(goal.title)))

    async def mark(self, goal: Goal, titles: Sequence[str]) -> float:
        """The mean mark by a judge without an emphasis: by likelihood if the model has any, else written."""
        try:
            return (await self.judge.read(goal.title, titles)).marks.mean
        except ModelError:
            return (await self.judge.ask(goal.title, titles, nobody, self.seed()))[1].marks.mean

    async def do(self, goal: Goal, plan: Plan, winner: Draft) -> None:
        """Let executors do the steps of a draft, in their order, and merge them."""
        found = self.results
        worker = Worker(self.model, self.settings)
        children = making.accept(plan, winner)
        for child in children:
            child.after = tuple(children[index].id for index in child.step.after)
        texts = []
        before = self.model.meter.tokens_out
        for child in children:
            found.leaves += 1
            try:
                text = await worker(plan, child, nobody, self.seed(), 0)
            except ModelError:
                found.failed += 1
                continue
            found.sound += not ResultChecks.of(plan, child, self.prompts).faults(text)
            making.result(child, text)
            texts.append(f"{child.title}. {text}")
        await self.alone(goal, self.model.meter.tokens_out - before)
        merged = await worker(plan, plan.root, nobody, self.seed(), 0)
        parts = [(child.title, output(child.result)) for child in children if child.result]
        found.plans += 1
        found.whole += not left_out(merged, parts)
        text = " ".join(texts)
        found.topics.append(topics(goal, text))
        found.words.append(len(content_words(text) - content_words(goal.title)))
        if not goal.seen:
            found.unseen.append(found.topics[-1])

    async def alone(self, goal: Goal, tokens: int) -> None:
        """What the model says of a goal when it's simply asked: once, and again and again until so many are written."""
        texts: list[str] = []
        while tokens > 0:
            asked = Request(
                agent="bench",
                purpose="work",
                subject=goal.title,
                system=self.prompts.executor.small_system,
                prompt=f"Write a detailed plan with concrete steps: {goal.title}",
                max_tokens=LONG,
                temperature=0.6,
                seed=self.seed(),
            )
            reply = await self.model.generate(asked)
            texts.append(reply.text)
            tokens -= max(1, reply.tokens_out)
        self.results.alone.append(topics(goal, texts[0]) if texts else 0.0)
        self.results.repeated.append(topics(goal, " ".join(texts)))

    async def tongue(self, goal: Goal) -> tuple[bool, bool]:
        """Whether a draft and a result are in the goal's language."""
        plan = making.plan(POLICY, goal.title)
        draft = await self.draft(plan, self.prompts.angles[0])
        child = making.accept(plan, draft)[0]
        wanted = next(each for each in self.prompts.languages if each.name == goal.language)
        drafted = " ".join(f"{title} {detail}" for title, detail in said(draft))
        try:
            done = await Worker(self.model, self.settings)(plan, child, nobody, self.seed(), 0)
        except ModelError:
            done = ""

        def right(text: str) -> bool:
            if script_of(text) != wanted.script:
                return False
            found = language_of(text, self.prompts.languages)
            return found == wanted or (not found.name and not is_foreign(text, wanted, self.prompts.languages))

        return right(drafted), right(done)


def nobody(text: str) -> None:
    """Hears what a model writes."""


def hand_in(plan: Plan, made: Proposal, hlc: int) -> Draft:
    """A proposal as a draft of the plan."""
    op = making.op(made, "ada", hlc)
    draft = plan.root.drafts[op.id] = Draft(op=op, steps=made.steps)
    return draft


def said(draft: Draft) -> list[tuple[str, str]]:
    """Titles and details."""
    return [(step.title, step.detail) for step in draft.steps]


def output(op: object) -> str:
    """The text of a result."""
    body = getattr(op, "body", None)
    return body.output if isinstance(body, Result) else ""


async def accuracy(bench: Bench, splits: Path) -> list[str]:
    """Rows on the judge: as `swarmtui judge` reckons them."""
    lines = (await trio.Path(splits).read_bytes()).splitlines()
    found = [item for item in trial.read(lines) if isinstance(item, trial.Numbered)]
    marked = [await trial.mark(bench.judge, item, [trial.LIKELIHOOD]) for item in found]
    rows = trial.tabulate(marked, trial.LIKELIHOOD, POLICY.pass_mark)
    good, flawed = rows[0], rows[-1]
    return [
        f"| judge | good split above flawed one, {splits.name} | {flawed.ranked} of {flawed.pairs} |",
        f"| judge | good splits that pass ({POLICY.pass_mark}) | {good.passing} of {good.splits} |",
        f"| judge | flawed splits that pass | {flawed.passing} of {flawed.splits} |",
    ]


def table(bench: Bench, tongues: Sequence[tuple[str, bool, bool]], judge: Sequence[str], seconds: float) -> str:
    """The report."""
    model, meter, results = bench.model, bench.model.meter, bench.results
    lines = ["| what | measure | value |", "|---|---|---|", *judge]
    drafts = f"{model.valid} of {model.drafts}"
    lines.append(f"| drafts | answers valid against their schema | {drafts} |")
    for way in bench.ways if bench.ways[0].marks else []:
        name, sound, mark, covered, words = way.row()
        lines += [
            f"| drafts: {name} | pass the checks | {sound} |",
            f"| | mean mark of the judge | {mark} |",
            f"| | topics of the reference list | {covered} |",
            f"| | distinct content words | {words} |",
        ]
    if results.leaves:
        lines += [
            f"| drafts | goals that needed the refinement | {bench.refined} of {results.plans} |",
            f"| plans | leaves with a result that passes the checks | {results.sound} of {results.leaves} |",
            f"| plans | merges in which every part is found | {results.whole} of {results.plans} |",
            f"| plans | topics of the reference list | {100 * fmean(results.topics):.0f} % |",
            f"| plans | distinct content words | {fmean(results.words):.0f} |",
            f"| without a swarm | topics, one long answer | {100 * fmean(results.alone):.0f} % |",
            f"| | topics, as many long answers as take the leaves' tokens | {100 * fmean(results.repeated):.0f} % |",
        ]
    if results.unseen:
        lines.append(f"| plans | topics, goals not seen while tuning | {100 * fmean(results.unseen):.0f} % |")
    for language in dict.fromkeys(name for name, _, _ in tongues):
        mine = [item for item in tongues if item[0] == language]
        count, drafted, done = len(mine), sum(item[1] for item in mine), sum(item[2] for item in mine)
        lines.append(f"| {language} | drafts, results in the language | {drafted} of {count}, {done} of {count} |")
    lines += [
        f"| cost | time | {seconds / 60:.1f} min |",
        f"| cost | requests | {meter.calls.total()} |",
        f"| cost | tokens read (cached), written | {meter.tokens_in} ({meter.tokens_cached}), {meter.tokens_out} |",
    ]
    return "\n".join(lines)


async def run(args: argparse.Namespace, tell: Callable[[str], None]) -> str:
    """Everything; returns the table.

    Raises:
        SwarmError: the model can't be used.
        ModelError: it failed.
    """
    began = time.monotonic()
    judge: list[str] = []
    tongues: list[tuple[str, bool, bool]] = []
    async with started(args.model) as inner:
        bench = Bench(Counted(inner), args.seed)
        with trio.move_on_after(args.minutes * 60) as limit:
            # In turns, so that a run that is cut short has something of both.
            plans, others = goals()[: args.goals], goals(languages=True)[: args.languages]
            for number in range(max(len(plans), len(others))):
                for goal in plans[number : number + 1]:
                    tell(f"{time.monotonic() - began:.0f} s: {goal.title}")
                    await bench.goal(goal)
                for goal in others[number : number + 1]:
                    tell(f"{time.monotonic() - began:.0f} s: {goal.title}")
                    tongues.append((goal.language, *await bench.tongue(goal)))
            if await trial.can_be_read(bench.judge):
                tell(f"{inner.name}: judging {args.splits.name}")
                judge = await accuracy(bench, args.splits)
        if limit.cancelled_caught:
            tell(f"stopped after {args.minutes} minutes: the table holds what was measured by then")
        return table(bench, tongues, judge, time.monotonic() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description="How good the plans of a model are.")
    parser.add_argument("--model", default="auto", help="as for swarmtui --model")
    parser.add_argument("--goals", type=int, default=10, help="how many goals are planned (10)")
    parser.add_argument("--languages", type=int, default=10, help="how many goals in other languages (10)")
    parser.add_argument("--splits", type=Path, default=SPLITS, help="file of splits for the judge")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    failed = False
    try:
        print(trio.run(run, args, tell))
    except* (SwarmError, ModelError) as group:
        failed = True
        for error in group.exceptions:
            tell(f"{error} {getattr(error, 'remedy', '')}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
