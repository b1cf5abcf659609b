"""A model without a model: canned, seeded answers for demos, tests and simulations. Always labelled 'scripted'."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from typing import Any

import trio

from swarmtui.llm import grammar
from swarmtui.llm.model import Likelihood, ModelError, Reply, Request

PIECE_WORDS = 6
CHARS_PER_TOKEN = 4
MAX_TOPIC = 48

THINGS = (
    ("Set", "the budget"),
    ("Fix", "the dates"),
    ("Compare", "three offers"),
    ("List", "the people who help"),
    ("Book", "the rooms"),
    ("Draw", "the route"),
    ("Buy", "the materials"),
    ("Ask for", "the permits"),
    ("Write", "a timetable"),
    ("Pack", "the tools"),
    ("Choose", "the food"),
    ("Print", "the tickets"),
    ("Measure", "the space"),
    ("Test", "the equipment"),
    ("Collect", "the addresses"),
    ("Rehearse", "the first hour"),
    ("Insure", "the valuables"),
    ("Photograph", "the results"),
    ("Invite", "the neighbours"),
    ("Sort", "the documents"),
    ("Check", "the weather"),
    ("Agree", "the rules"),
    ("Reserve", "the transport"),
    ("Hand over", "the keys"),
)
"""What a step may do. An angle takes its own stretch of them, so rivals differ."""

_VERBS = re.compile(r"^(?:plan|organi[sz]e|write|prepare|make|build|create|start|run|hold|set up)\s+", re.IGNORECASE)


class ScriptedModel:
    """Implements `llm.model.Model` by rules.

    The same seed and request give the same answer, whatever else goes on. Text comes in pieces with `trio.sleep`
    between them, so it works under a mock clock too.

    Args:
        seed: changes every answer.
        tokens_per_second: how fast each request is answered.
        fail_rate: share of requests that fail with a ModelError.
        slow: makes every answer so many times slower.
    """

    def __init__(
        self, seed: int = 0, *, tokens_per_second: float = 400.0, fail_rate: float = 0.0, slow: float = 1.0
    ) -> None:
        self._seed = seed
        self._pace = tokens_per_second / max(slow, 1e-9)
        self._fail_rate = fail_rate
        self._asked = 0
        self.notices: list[str] = []
        self.state = "ready"

    @property
    def name(self) -> str:
        """What it is."""
        return "scripted"

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Nothing has to run; sleeps until cancelled, as an engine's client would."""
        task_status.started()
        await trio.sleep_forever()

    async def ready(self) -> None:
        """It always is."""
        await trio.lowlevel.checkpoint()

    async def generate(self, request: Request, on_text: Callable[[str], None] | None = None) -> Reply:
        """See `Model.generate`."""
        rng = self._random(request)
        self._asked += 1
        if rng.random() < self._fail_rate:
            await trio.sleep(20 / self._pace)
            raise ModelError("scripted failure")
        value: Any = None
        cut = False
        if request.schema is None:
            text = _prose(request, rng)
            limit = request.max_tokens * CHARS_PER_TOKEN
            cut = len(text) > limit
            text = text[:limit]
        else:
            grammar.check(request.schema)
            value = _Form(request, rng).fill(request.schema)
            text = grammar.dumps(value)
        await self._write(text, on_text)
        return Reply(
            text=text,
            value=value,
            tokens_in=_tokens(request.system) + _tokens(request.prompt),
            tokens_cached=_tokens(request.system),
            tokens_out=_tokens(text),
            cut=cut,
        )

    async def likelihood(self, request: Likelihood) -> list[float]:
        """It has none: scorers ask it for written marks.

        Raises:
            ModelError: always.
        """
        await trio.lowlevel.checkpoint()
        raise ModelError("the scripted model knows no likelihoods")

    async def _write(self, text: str, on_text: Callable[[str], None] | None) -> None:
        words = re.findall(r"\S*\s*", text)
        for at in range(0, len(words), PIECE_WORDS):
            piece = "".join(words[at : at + PIECE_WORDS])
            await trio.sleep(_tokens(piece) / self._pace)
            if on_text is not None and piece:
                on_text(piece)

    def _random(self, request: Request) -> random.Random:
        """The request's own source of chance. A repeated request that failed gets another fate by its own seed."""
        key = "\0".join(
            [str(self._seed), request.agent, request.purpose, request.subject, str(request.seed), str(request.facts)]
        )
        if self._fail_rate:
            # An agent that asks the very same again must not fail for ever.
            key += f"\0{self._asked}"
        return random.Random(hashlib.sha256(key.encode("utf-8", "replace")).digest())


def _tokens(text: str) -> int:
    return (len(text) + CHARS_PER_TOKEN - 1) // CHARS_PER_TOKEN


def topic(subject: str) -> str:
    """What a task is about, in a few words: steps name it."""
    text = " ".join(_VERBS.sub("", subject.strip()).split())
    for verb, thing in THINGS:
        if text.startswith(f"{verb} {thing}"):
            # One of our own steps: split what it's about, not the whole plan again.
            return thing.removeprefix("the ")
    if len(text) > MAX_TOPIC:
        text = text[:MAX_TOPIC].rsplit(" ", 1)[0]
    return text.rstrip(".,;:!?") or "the task"


def steps(subject: str, angle: str, count: int, rng: random.Random) -> list[str]:
    """Titles of steps for a task, different for each angle."""
    about = topic(subject)
    shift = int.from_bytes(hashlib.sha256(angle.encode("utf-8", "replace")).digest()[:2]) % len(THINGS)
    near = [THINGS[(shift + i) % len(THINGS)] for i in range(min(len(THINGS), count * 2))]
    near = [each for each in near if about not in each[1]]
    chosen = sorted(rng.sample(range(len(near)), min(count, len(near))))
    return [f"{near[i][0]} {near[i][1]} for {about}" for i in chosen]


def _prose(request: Request, rng: random.Random) -> str:
    facts = request.facts
    if request.purpose == "merge":
        children, results = facts.get("children", []), facts.get("results", [])
        lines = [f"{request.subject}: the parts together.", ""]
        for i, child in enumerate(children):
            title, result = (
                (child.get("title", ""), child.get("output", "")) if isinstance(child, dict) else (child, "")
            )
            result = result or (results[i] if i < len(results) else "")
            lines.append(f"{i + 1}. {title}: {_first_sentence(str(result))}")
        return "\n".join(lines)
    built_on = [
        str(each.get("title", "")) if isinstance(each, dict) else str(each) for each in facts.get("results", [])
    ]
    about = topic(request.subject)
    verb, price = rng.choice(["Chosen", "Agreed", "Reserved"]), rng.randint(2, 90) * 10
    lines = [
        f"{request.subject}: done in {rng.randint(2, 9)} hours.",
        f"- {verb}: option {rng.choice('ABC')} for {about}, {price} euros.",
        f"- {rng.choice(['Ada', 'Ben', 'Chidi', 'Dana'])} looks after it until day {rng.randint(3, 20)}.",
    ]
    if built_on:
        lines.append(f"- Builds on: {'; '.join(built_on[:4])}.")
    if facts.get("notes"):
        lines.append(f"- Kept in mind: {'; '.join(map(str, facts['notes'][:3]))}")
    return "\n".join(lines)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0][:200] or "done."


class _Form:
    """Fills a schema by the names of its fields."""

    def __init__(self, request: Request, rng: random.Random) -> None:
        self._request = request
        self._facts = request.facts
        self._rng = rng
        self._titles: list[str] = []
        self._step = 0

    def fill(self, schema: dict[str, Any], name: str = "") -> Any:
        """A value that's valid against the schema."""
        if "enum" in schema or "const" in schema:
            return self._rng.choice(schema.get("enum", [schema.get("const")]))
        kind = schema["type"]
        if kind == "object":
            return {key: self.fill(each, key) for key, each in schema.get("properties", {}).items()}
        if kind == "array":
            return self._list(schema, name)
        if kind == "string":
            return self._text(name, schema.get("minLength", 0), schema.get("maxLength", grammar.DEFAULT_TEXT))
        if kind == "integer":
            least, most = schema.get("minimum", 0), schema.get("maximum", 100)
            return (
                self._rng.randint(least + (most - least) * 11 // 20, most)
                if name in MARKS
                else self._rng.randint(least, most)
            )
        return kind == "boolean" and self._atomic()

    def _atomic(self) -> bool:
        deepest = self._facts.get("depth", 0) + 2 >= self._facts.get("max_depth", 3)
        return deepest or self._rng.random() < 0.6

    def _list(self, schema: dict[str, Any], name: str) -> list[Any]:
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", max(least, grammar.DEFAULT_ITEMS))
        if name == "after":
            return self._after(schema["items"], least, most)
        if name == "steps":
            low, high = self._facts.get("fan_out", [least, most])
            least, most = max(least, min(low, most)), max(least, min(high, most))
            count = self._rng.randint(least, most)
            self._titles = steps(self._request.subject, str(self._facts.get("angle", "")), count, self._rng)
        else:
            count = self._rng.randint(least, min(most, least + 3))
        items = []
        for self._step in range(count):
            items.append(self.fill(schema["items"], "title" if name == "steps" else name))
        return items

    def _after(self, items: dict[str, Any], least: int, most: int) -> list[Any]:
        """Mostly nothing, sometimes the step before (numbered as the schema numbers: from its minimum)."""
        first, last = items.get("minimum", 0), items.get("maximum", 15)
        before = first + self._step - 1
        if self._step and least <= 1 <= most and before <= last and self._rng.random() < 0.3:
            return [before]
        return [first] * least

    def _text(self, name: str, least: int, most: int) -> str:
        if name == "title" and self._step < len(self._titles):
            text = self._titles[self._step]
        elif name == "title":
            text = f"Step {self._step + 1} of {topic(self._request.subject)}"
        elif name == "detail":
            text = f"Done when it's written down and agreed, part {self._step + 1}."
        elif name == "rationale":
            text = f"Split {self._facts.get('angle') or 'by activity'}, so that each step can be done by itself."
        elif name == "critique":
            given = self._facts.get("steps") or ["the first step"]
            text = f"“{str(self._rng.choice(given))[:80]}” could say more exactly what comes out of it."
        else:
            text = _prose(self._request, self._rng)
        return text[:most].ljust(least, grammar.FILLER)


MARKS = ("specific", "distinct", "complete")
