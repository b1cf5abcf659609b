"""The scripted model: seeded, labelled, valid, alive, able to fail."""

import pytest
import trio
from trio.testing import MockClock

from swarmtui.llm import grammar
from swarmtui.llm.model import Likelihood, ModelError, Request
from swarmtui.llm.scripted import ScriptedModel
from tests.llm.test_decoder import DRAFT, JUDGE, WORK

TITLES = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "items": {"type": "string", "minLength": 4, "maxLength": 100},
            "minItems": 3,
            "maxItems": 5,
        }
    },
    "required": ["steps"],
}


def ask(purpose="draft", schema=TITLES, seed=1, agent="ada", **facts):
    return Request(
        agent=agent,
        purpose=purpose,
        subject="Plan a two-week trip to Japan",
        system="s",
        prompt="p",
        schema=schema,
        seed=seed,
        facts=facts,
    )


def fast():
    return ScriptedModel(7, tokens_per_second=1e9)


async def test_the_same_seed_gives_the_same_answer_in_any_order():
    requests = [ask(seed=i, angle=f"a{i % 3}") for i in range(6)]
    one, other = fast(), fast()
    first = [(await one.generate(each)).text for each in requests]
    second = [(await other.generate(each)).text for each in reversed(requests)]
    assert first == second[::-1]
    assert len(set(first)) > 3
    assert one.name == "scripted"
    assert (await ScriptedModel(8, tokens_per_second=1e9).generate(requests[0])).text != first[0]


@pytest.mark.parametrize("schema", [DRAFT, JUDGE, WORK, TITLES])
async def test_answers_are_valid(schema):
    for seed in range(40):
        reply = await fast().generate(ask(schema=schema, seed=seed, angle=f"a{seed}", fan_out=[2, 5], depth=seed % 3))
        assert grammar.fault(schema, reply.value) == "", reply.value
        assert reply.tokens_out > 0


async def test_rivals_differ_and_steps_dont_repeat():
    drafts = [
        (await fast().generate(ask(angle=angle, fan_out=[4, 5]))).value["steps"] for angle in ("by place", "by risk")
    ]
    assert drafts[0] != drafts[1]
    for steps in drafts:
        assert len(set(steps)) == len(steps)
        assert all("Japan" in each for each in steps)


async def test_results_use_what_they_were_told_and_a_merge_names_every_part():
    work = await fast().generate(ask("work", None, results=["Fix the dates"], notes=["no flights"]))
    assert "Fix the dates" in work.text
    assert "no flights" in work.text
    merge = await fast().generate(
        ask("merge", None, children=["Fix the dates", "Book the rooms"], results=["In May. Or June.", "Two."])
    )
    assert "Fix the dates: In May." in merge.text
    assert "Book the rooms: Two." in merge.text


async def test_text_comes_in_pieces_on_any_clock(mock_clock: MockClock):
    mock_clock.autojump_threshold = 0
    heard = []
    began = trio.current_time()
    model = ScriptedModel(1, tokens_per_second=10, slow=2)
    reply = await model.generate(ask("work", None), heard.append)
    assert "".join(heard) == reply.text
    assert len(heard) > 2
    assert trio.current_time() - began > 2


async def test_it_fails_when_told_to_and_knows_no_likelihoods():
    model = ScriptedModel(1, tokens_per_second=1e9, fail_rate=0.5)
    outcomes = []
    for seed in range(40):
        try:
            await model.generate(ask(seed=seed))
            outcomes.append(True)
        except ModelError:
            outcomes.append(False)
    assert 5 < sum(outcomes) < 35
    with pytest.raises(ModelError):
        await model.likelihood(Likelihood(agent="a", prefix="p", continuations=["c"]))
