"""What is made of a model's answers."""

from __future__ import annotations

import pytest

from swarmtui.agents import AgentSettings
from swarmtui.agents.work import Worker, append, finish, left_out
from swarmtui.llm.model import Likelihood, ModelError, Reply, Request
from swarmtui.plan.ops import MAX_OUTPUT

from . import making

NOTE = "(Cut.)"
PARTS = [
    ("Rent a shop", "Mill Street 3 for 1,200 a month, signed with Mrs Fowler."),
    ("Buy an oven", "A deck oven by Salva, second hand, delivered in May."),
]


class Told:
    """A model that says what it's told to, in turn."""

    name = "told"
    tokens_per_second = 0.0

    def __init__(self, *texts: str, cut: bool = False) -> None:
        self.texts = list(texts)
        self.requests: list[Request] = []
        self.cut = cut

    async def generate(self, request: Request, on_text: object = None) -> Reply:
        self.requests.append(request)
        return Reply(text=self.texts.pop(0), cut=self.cut)

    async def likelihood(self, request: Likelihood) -> list[float]:
        raise ModelError("can't")


def test_a_cut_answer_ends_at_a_sentence_and_says_so() -> None:
    assert finish("It is done. Then we", True, NOTE) == f"It is done.\n\n{NOTE}"
    assert finish("It is done. Then we", False, NOTE) == "It is done. Then we"
    assert finish("", True, NOTE) == ""


def test_an_answer_stays_within_the_limit_of_ops() -> None:
    text = finish("\n".join(f"Line {number} is here." for number in range(5000)), False, NOTE)
    assert len(text) <= MAX_OUTPUT
    assert text.endswith(NOTE)


def test_parts_that_a_merge_left_out_are_found_and_put_after() -> None:
    text = "We rent the shop in Mill Street."
    missing = left_out(text, PARTS)
    assert missing == PARTS[1:]
    assert "Salva" in append(text, missing, MAX_OUTPUT)
    assert len(append("x" * 31_000, [("T" * 200, "y" * 9_000)] * 16, MAX_OUTPUT - 200)) <= MAX_OUTPUT + 16 * 300


async def test_a_leaf_is_told_all_that_it_needs() -> None:
    plan = making.plan()
    shop, oven = making.accept(plan, making.draft(plan))
    making.result(shop, "Mill Street 3")
    oven.after = (shop.id,)
    model = Told("A deck oven.")
    text = await Worker(model, AgentSettings(name="cleo"))(plan, oven, lambda _: None, 1, 0)
    assert text == "A deck oven."
    prompt = model.requests[0].prompt
    for part in ("Open a bakery", "Rent a shop", "Mill Street 3", "Buy an oven"):
        assert part in prompt


async def test_a_merge_without_a_trace_of_its_parts_is_done_again() -> None:
    plan = making.plan()
    children = making.accept(plan, making.draft(plan))
    for child, (_, text) in zip(children, PARTS, strict=True):
        making.result(child, text)
    model = Told("Hello.", "We rent a shop and Mrs Fowler signed.")
    text = await Worker(model, AgentSettings())(plan, plan.root, lambda _: None, 1, 0)
    assert len(model.requests) == 2
    assert "Rent a shop" in model.requests[1].prompt
    assert left_out(text, PARTS) == []


async def test_nothing_written_is_a_failure() -> None:
    plan = making.plan()
    shop, _ = making.accept(plan, making.draft(plan))
    with pytest.raises(ModelError):
        await Worker(Told(" \n "), AgentSettings())(plan, shop, lambda _: None, 1, 0)


async def test_after_a_failure_less_is_told() -> None:
    plan = making.plan()
    children = making.accept(plan, making.draft(plan))
    for child in children:
        making.result(child, "A long story. " * 1000)
    model = Told("Rent a shop, buy an oven.", "Rent a shop, buy an oven.")
    worker = Worker(model, AgentSettings())
    await worker(plan, plan.root, lambda _: None, 1, 0)
    await worker(plan, plan.root, lambda _: None, 1, 2)
    assert len(model.requests[1].prompt) < len(model.requests[0].prompt) / 2
