"""What is made of a model's answers."""

from __future__ import annotations

import pytest

from swarmtui.agents import AgentSettings
from swarmtui.agents.digest import digest
from swarmtui.agents.results import Checks, append, finish, left_out
from swarmtui.agents.settings import default_prompts
from swarmtui.agents.work import Worker
from swarmtui.llm.engine_cache import shared as shared_length
from swarmtui.llm.model import ModelError
from swarmtui.plan.ops import MAX_OUTPUT
from swarmtui.plan.state import Plan, Task

from . import making
from .told import Told

NOTE, ADDED = "(Cut.)", "(Added.)"
PARTS = [
    ("Rent a shop", "Mill Street 3 for 1,200 a month, signed with Mrs Fowler."),
    ("Buy an oven", "A deck oven by Salva, second hand, delivered in May."),
]
GOOD = "A deck oven by Salva, second hand, for 4,000 euros, delivered in May."


async def work(model: Told, plan: Plan, task: Task, tries: int = 0) -> str:
    return await Worker(model, AgentSettings(name="cleo"))(plan, task, lambda _: None, 1, tries)


def bakery() -> tuple[Plan, Task, Task]:
    """A plan in which the shop is rented and the oven not yet bought."""
    plan = making.plan()
    shop, oven = making.accept(plan, making.draft(plan))
    making.result(shop, PARTS[0][1])
    return plan, shop, oven


# Cutting


def test_a_cut_answer_ends_at_a_sentence_and_says_so() -> None:
    assert finish("It is done. Then we", True, NOTE) == f"It is done.\n\n{NOTE}"
    assert finish("It is done. Then we", False, NOTE) == "It is done. Then we"
    assert finish("終わりました。それから", True, NOTE) == f"終わりました。\n\n{NOTE}"
    assert finish("1. Buy flour.\n2.", True, NOTE) == f"1. Buy flour.\n\n{NOTE}"
    assert finish("", True, NOTE) == ""


@pytest.mark.parametrize("line", ["Line {} is here.", "{} 行目はここです。"])
def test_an_answer_stays_within_the_limit_of_ops(line: str) -> None:
    text = finish("\n".join(line.format(number) for number in range(5000)), False, NOTE)
    assert MAX_OUTPUT / 2 < len(text) <= MAX_OUTPUT
    assert text.endswith(NOTE)
    assert text.removesuffix(NOTE).rstrip()[-1] in ".。"


# Leaves


async def test_a_leaf_is_told_all_that_it_needs() -> None:
    plan, shop, oven = bakery()
    oven.after = (shop.id,)
    model = Told(GOOD)
    assert await work(model, plan, oven) == GOOD
    prompt = model.requests[0].prompt
    for part in ("Open a bakery", "Rent a shop", "Mill Street 3", "Buy an oven"):
        assert part in prompt


async def test_what_two_steps_have_in_common_stands_first_so_that_a_model_reads_it_once() -> None:
    plan, *steps = bakery()
    asked = []
    for step in steps:
        model = Told(GOOD)
        await work(model, plan, step)
        asked.append(model.requests[0])
    assert asked[0].system == asked[1].system
    shared = asked[0].prompt[: shared_length(asked[0].prompt, asked[1].prompt)]
    assert all(each in shared for each in ("Open a bakery", "Rent a shop", "Buy an oven"))


async def test_a_merge_begins_as_the_prompt_of_the_last_step_so_that_a_model_reads_the_results_once() -> None:
    plan, _, oven = bakery()
    (bread, cakes) = making.accept(plan, making.draft(plan, task=oven, titles=["Bread", "Cakes"]), oven)
    oven.leaf = False
    cakes.after = (bread.id,)
    making.result(bread, "Rye, wheat and spelt.\nNothing sweet.")
    asked = []
    for step in (cakes, oven):
        model = Told(GOOD, GOOD)
        await work(model, plan, step)
        asked.append(model.requests[0].prompt)
        making.result(cakes, "Apple and plum.")
    shared = asked[0][: shared_length(asked[0], asked[1])]
    assert all(each in shared for each in ("Open a bakery", "Buy an oven", "Bread; Cakes", "Rye, wheat and spelt."))
    assert "Apple and plum." in asked[1]


async def test_echoes_of_the_instructions_are_no_result() -> None:
    plan, _, oven = bakery()
    model = Told(f"Your step: Buy an oven\n{GOOD}\n An earlier answer was refused: it is empty")
    assert await work(model, plan, oven) == GOOD


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("Buy an oven. Open a bakery: buy an oven.", "it only repeats the task"),
        (PARTS[0][1], "it is another step's result"),
        ("Paint two coats and let them dry", "it copies an example"),
        ("中古のデッキオーブンを四千ユーロで買う。五月に届く。", "it is in another language"),
        ("Ein gebrauchter Ofen ist für die Bäckerei gut, und er kommt mit dem Lastwagen.", "it is in another language"),
        (" \n ", "it is empty"),
        ("Sure! Here is the result:", "it is empty"),
    ],
)
async def test_a_result_with_a_fault_is_asked_for_once_more(bad: str, fault: str) -> None:
    plan, _, oven = bakery()
    model = Told(bad, GOOD)
    assert await work(model, plan, oven) == GOOD
    first, second = model.requests
    assert fault in second.prompt
    assert fault not in first.prompt
    assert first.seed != second.seed


async def test_of_two_results_with_faults_the_better_one_stands() -> None:
    plan, _, oven = bakery()
    model = Told("Open a bakery and buy an oven.", " ")
    assert await work(model, plan, oven) == "Open a bakery and buy an oven."
    assert len(model.requests) == 2


async def test_nothing_written_is_a_failure() -> None:
    plan, _, oven = bakery()
    for name in ("told", "Tiny-135M"):
        with pytest.raises(ModelError):
            await work(Told(" \n ", name=name), plan, oven)


async def test_a_german_task_is_asked_for_in_german() -> None:
    plan = making.plan(title="Eine kleine Bäckerei eröffnen")
    shop, _ = making.accept(plan, making.draft(plan, titles=["Einen Laden mieten", "Einen Ofen kaufen"]))
    answer = "Mühlstraße 3, 1200 Euro im Monat, der Vertrag ist mit Frau Vogler geschlossen."
    model = Told("The shop is in the street of the mill and you rent it for 1,200.", answer)
    assert await work(model, plan, shop) == answer
    assert "Antworte auf Deutsch." in model.requests[0].prompt


async def test_of_a_small_models_rambling_the_points_are_left() -> None:
    plan, shop, oven = bakery()
    making.result(shop, "- Ask the landlord about the lease in Mill Street.")
    model = Told(
        "Sure! Here's a checklist for this part:\n\n"
        "1. **Compare prices**: look at three second-hand deck ovens.\n"
        "2. Buy an oven.\n"
        "3. I've bought many ovens in my life.\n"
        "4. Next, measure the doors of the kitchen.\n"
        "5. Compare prices: look at three second-hand deck ovens.\n"
        "6. Rent a shop in the centre.\n"
        "7. Ask the landlord about the lease in Mill Street.\n"
        "8. Do you want gas or electricity?\n"
        "9. To buy an oven, pay a tenth in advance.\n"
        "10. This is important.\n"
        "11. Let the electrician check the fuses and",
        name="Tiny-135M",
        cut=True,
    )
    assert (await work(model, plan, oven)).split("\n") == [
        "- Compare prices: look at three second-hand deck ovens.",
        "- Measure the doors of the kitchen.",
        "- Pay a tenth in advance.",
    ]
    assert len(model.requests) == 1


async def test_a_small_model_is_asked_in_other_words_where_few_points_are_sound() -> None:
    plan, _, oven = bakery()
    model = Told("Buy an oven! Buy an oven!", "Compare three ovens by size and price.", name="Tiny-135M")
    assert await work(model, plan, oven) == "- Compare three ovens by size and price."
    first, second = model.requests
    assert first.prompt != second.prompt
    assert "oven" in second.prompt


async def test_a_small_model_is_told_results_and_notes_too() -> None:
    plan, shop, oven = bakery()
    oven.after = (shop.id,)
    model = Told(GOOD, name="Tiny-135M")
    await work(model, plan, oven)
    assert "Mill Street 3" in model.requests[0].prompt


def test_a_point_of_another_task_is_told_by_its_title() -> None:
    plan, _, oven = bakery()
    checks = Checks.of(plan, oven, default_prompts())
    assert checks.about_another("Rent a shop in the centre")
    assert not checks.about_another("Buy an oven for the shop")


# Branches


def test_parts_that_a_merge_left_out_are_found_and_put_after() -> None:
    text = "We rent the shop in Mill Street."
    missing = left_out(text, PARTS)
    assert missing == PARTS[1:]
    joined = append(text, missing, MAX_OUTPUT, ADDED, NOTE)
    assert joined.startswith(f"{text}\n\n{ADDED}\n\n- Buy an oven: A deck oven by Salva")


def test_room_is_made_for_the_parts_that_were_left_out() -> None:
    parts = [(f"Part {number} " + "t" * 180, "y" * 9_000) for number in range(16)]
    text = append("This is a sentence. " * 1_600, parts, MAX_OUTPUT, ADDED, NOTE)
    assert len(text) <= MAX_OUTPUT
    assert left_out(text, parts) == []
    assert NOTE in text


def done_bakery() -> Plan:
    plan = making.plan()
    children = making.accept(plan, making.draft(plan))
    for child, (_, text) in zip(children, PARTS, strict=True):
        making.result(child, text)
    return plan


async def test_a_merge_that_forgets_a_part_is_done_again() -> None:
    plan = done_bakery()
    whole = "We rent the shop in Mill Street from Mrs Fowler and buy an oven by Salva, delivered in May."
    model = Told("We rent a shop in Mill Street and Mrs Fowler signed.", whole)
    assert await work(model, plan, plan.root) == whole
    assert len(model.requests) == 2
    assert "left these out, so name them: Buy an oven" in model.requests[1].prompt


async def test_what_a_merge_forgets_twice_is_put_after_it() -> None:
    plan = done_bakery()
    prompts = default_prompts().executor
    model = Told("Hello.", "We rent a shop and Mrs Fowler signed.")
    text = await work(model, plan, plan.root)
    assert len(model.requests) == 2
    assert text.startswith("We rent a shop and Mrs Fowler signed.")
    assert prompts.added_note in text
    assert left_out(text, PARTS) == []


async def test_a_small_model_introduces_and_every_part_follows() -> None:
    plan = done_bakery()
    model = Told(
        "Sure! Here is it. Our bakery is great. Fresh bread attracts the whole neighbourhood. I hope this helps!",
        name="Tiny-135M",
    )
    text = await work(model, plan, plan.root)
    assert text == (
        "Fresh bread attracts the whole neighbourhood.\n\n"
        "1. **Rent a shop**: Mill Street 3 for 1,200 a month, signed with Mrs Fowler.\n"
        "2. **Buy an oven**: A deck oven by Salva, second hand, delivered in May."
    )
    assert left_out(text, PARTS) == []


async def test_a_small_models_merge_needs_no_introduction() -> None:
    plan = done_bakery()
    text = await work(Told("Sure!", name="Tiny-135M"), plan, plan.root)
    assert text.startswith("1. **Rent a shop**")


def test_a_digest_names_every_part_within_its_limit() -> None:
    parts = [(f"Part {number}", "A long sentence about nothing. " * 200) for number in range(16)]
    text = digest("An introduction.", parts, 1_200)
    assert len(text) <= 1_200
    assert all(f"**Part {number}**" in text for number in range(16))


def test_a_digest_cuts_no_point_that_it_can_leave_out() -> None:
    long = "The customers are likely young adults who are active in the cycling industry and " + "very " * 20 + "fit."
    assert digest("", [("Market", f"- {long}\n- Look at the shops.\n- Ask riders.\n- Sum up.")], 900) == (
        "1. **Market**: Look at the shops; Ask riders."
    )
    assert digest("", [("Market", f"- {long}\n- {long}")], 900).endswith("very …")


async def test_after_a_failure_less_is_told() -> None:
    plan = making.plan()
    children = making.accept(plan, making.draft(plan))
    for child in children:
        making.result(child, "A long story. " * 1000)
    model = Told("Rent a shop, buy an oven.")
    await work(model, plan, plan.root)
    await work(model, plan, plan.root, tries=2)
    assert len(model.requests[1].prompt) < len(model.requests[0].prompt) / 2
