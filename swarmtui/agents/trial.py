"""Trying a judge: splits that are known to be good or flawed, how it marks them, and how often it's right.

A file of splits holds one JSON object a line: `{"goal": text, "flaw": null or its kind, "steps": [texts]}`; other keys
are ignored. A *pair* is a flawed split and a good one (`flaw` null) of the same goal; it's ranked right if the good one
gets the higher mean mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec
import trio
from msgspec import Meta
from msgspec.structs import replace

from swarmtui.llm.model import Likelihood, Model, ModelError, Reply, Request
from swarmtui.plan.ops import MAX_STEPS, Title

from .judge import Judge
from .judging import MIDDLE, Verdict
from .wording import one_line

MAX_LINE = 64 * 1024
GOOD = "none"
"""What a split without a flaw is called in tables."""

Method: TypeAlias = Literal["likelihood", "written", "written, checked"]
LIKELIHOOD: Method = "likelihood"
WRITTEN: Method = "written"
CHECKED: Method = "written, checked"


class Split(msgspec.Struct, frozen=True):
    """A goal split into steps, and what's wrong with that."""

    goal: Title
    steps: Annotated[tuple[Title, ...], Meta(min_length=1, max_length=MAX_STEPS)]
    flaw: Annotated[str, Meta(min_length=1, max_length=40)] | None = None


@dataclass(frozen=True, slots=True)
class Numbered:
    """A split and the line that it stands in, counted from 1."""

    line: int
    split: Split


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that can't be judged, and why."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Marked:
    """A split with what each method made of it."""

    line: int
    split: Split
    verdicts: Mapping[Method, Verdict]


@dataclass(frozen=True, slots=True)
class Row:
    """How one method did on one kind of flaw."""

    flaw: str
    splits: int
    pairs: int
    ranked: int
    """Pairs in which the good split got the higher mean mark."""
    tied: int
    """Pairs in which both got the same."""
    passing: int
    """Splits that reach the pass mark."""
    specific: float
    distinct: float
    complete: float
    mean: float


def read(lines: Iterable[bytes]) -> Iterator[Numbered | Bad]:
    """Read a file of splits line by line; blank lines are passed over, the rest is a split or bad."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield Numbered(number, _split(line))
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            yield Bad(number, one_line(str(error)))


def _split(line: bytes) -> Split:
    if len(line) > MAX_LINE:
        raise ValueError(f"longer than {MAX_LINE} bytes")
    found = msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf"), type=Split)
    clean = Split(one_line(found.goal), tuple(map(one_line, found.steps)), found.flaw)
    if not clean.goal:
        raise ValueError("the goal is blank")
    for number, step in enumerate(clean.steps, 1):
        if not step:
            raise ValueError(f"step {number} is blank")
    return clean


async def mark(
    judge: Judge,
    found: Numbered,
    methods: Sequence[Method],
    write: Callable[[str], None] = lambda text: None,
    pass_mark: float = MIDDLE,
) -> Marked:
    """Let a judge mark a split, by each method.

    Raises:
        ModelError: the model failed, or can't do what the method needs.
    """
    split = found.split
    verdicts: dict[Method, Verdict] = {}
    if LIKELIHOOD in methods:
        verdicts[LIKELIHOOD] = await judge.read(split.goal, split.steps, pass_mark=pass_mark)
    if WRITTEN in methods or CHECKED in methods:
        raw, checked = await judge.ask(split.goal, split.steps, write, seed=found.line)
        verdicts |= {name: verdict for name, verdict in ((WRITTEN, raw), (CHECKED, checked)) if name in methods}
    return Marked(found.line, split, verdicts)


async def can_be_read(judge: Judge) -> bool:
    """Whether the model tells likelihoods at all: a short try."""
    try:
        await judge.read("Paint the fence", ("Buy a tin of paint", "Sand the boards"))
    except ModelError:
        return False
    return True


class Remembered:
    """A model that remembers every likelihood: the splits of one goal have most of their steps in common."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._known: dict[str, dict[str, float]] = {}
        self._turns: dict[str, trio.Lock] = {}

    @property
    def name(self) -> str:
        return self._model.name

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        """See `Model.generate`."""
        return await self._model.generate(request, on_text)

    async def likelihood(self, request: Likelihood) -> list[float]:
        """See `Model.likelihood`."""
        known = self._known.setdefault(request.prefix, {})
        async with self._turns.setdefault(request.prefix, trio.Lock()):
            new = [text for text in dict.fromkeys(request.continuations) if text not in known]
            if new:
                found = await self._model.likelihood(replace(request, continuations=new))
                known.update(zip(new, found, strict=True))
        return [known[text] for text in request.continuations]


def tabulate(marked: Sequence[Marked], method: Method, pass_mark: int) -> list[Row]:
    """A row for the good splits, one for each kind of flaw in the order of the file, one for all flawed."""
    found = [each for each in marked if method in each.verdicts]
    good = [each for each in found if each.split.flaw is None]
    flawed = [each for each in found if each.split.flaw is not None]
    kinds = dict.fromkeys(str(each.split.flaw) for each in flawed)
    rows = [_row(GOOD, good, [], method, pass_mark)] if good else []
    rows += [
        _row(kind, [each for each in flawed if each.split.flaw == kind], good, method, pass_mark) for kind in kinds
    ]
    return rows + ([_row("all flaws", flawed, good, method, pass_mark)] if len(kinds) > 1 else [])


def _row(name: str, splits: Sequence[Marked], good: Sequence[Marked], method: Method, pass_mark: int) -> Row:
    def mean(each: Marked) -> float:
        return each.verdicts[method].marks.mean

    pairs = [(one, other) for one in splits for other in good if one.split.goal == other.split.goal]
    marks = [each.verdicts[method].marks for each in splits]
    count = len(splits)
    return Row(
        flaw=name,
        splits=count,
        pairs=len(pairs),
        ranked=sum(mean(other) > mean(one) for one, other in pairs),
        tied=sum(mean(other) == mean(one) for one, other in pairs),
        passing=sum(mark.mean >= pass_mark for mark in marks),
        specific=sum(mark.specific for mark in marks) / count,
        distinct=sum(mark.distinct for mark in marks) / count,
        complete=sum(mark.complete for mark in marks) / count,
        mean=sum(mark.mean for mark in marks) / count,
    )
