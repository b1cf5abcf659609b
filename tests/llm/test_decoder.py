"""Whatever the logits and the budget, an answer to a schema parses and is valid."""

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtui.llm import grammar
from swarmtui.llm.decoder import Decoder
from swarmtui.llm.sampler import Sampler


class Bytes:
    """A vocabulary of single bytes, some pairs that straddle a string's end, and two control tokens."""

    EXTRA = (b'", "', b'"}', b"}]", b'."', b" the", b"12", b"\\n", b"\n\n", b'\\"', "ü".encode(), b"true", b'": "')

    def __init__(self) -> None:
        self._pieces = [bytes([each]) for each in range(256)] + list(self.EXTRA) + [b"", b""]
        self.size = len(self._pieces)

    def tokens(self, text: str) -> list[int]:
        data, found = text.encode(), []
        while data:
            longest = max(
                (i for i, each in enumerate(self._pieces) if each and data.startswith(each)),
                key=lambda i: len(self._pieces[i]),
            )
            found.append(longest)
            data = data[len(self._pieces[longest]) :]
        return found

    def piece(self, token: int) -> bytes:
        return self._pieces[token]


VOCABULARY = Bytes()


def run(schema, seed, max_tokens, favour=()):
    """Decode with random logits; returns the decoder and the tokens that were fed."""
    rng = np.random.default_rng(seed)
    decoder = Decoder(VOCABULARY, Sampler(seed, 1.0), schema, max_tokens)
    fed = decoder.take_tokens()
    while not decoder.done:
        logits = rng.normal(0, 3, VOCABULARY.size).astype(np.float32)
        for token in favour:
            logits[token] += 4
        decoder.sample(logits)
        fed += decoder.take_tokens()
    return decoder, fed


DRAFT = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "minItems": 2,
            "maxItems": 6,
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string", "minLength": 1, "maxLength": 80},
                    "detail": {"type": "string", "maxLength": 200},
                    "atomic": {"type": "boolean"},
                    "needs": {"enum": ["write", "code", "code review"]},
                    "after": {
                        "type": "array",
                        "items": {"type": "integer", "minimum": 0, "maximum": 15},
                        "maxItems": 3,
                    },
                },
                "required": ["title", "detail", "atomic", "needs", "after"],
            },
        },
        "rationale": {"type": "string", "maxLength": 300},
    },
    "required": ["steps", "rationale"],
}
JUDGE = {
    "type": "object",
    "properties": {
        **{name: {"type": "integer", "minimum": 0, "maximum": 100} for name in ("specific", "distinct", "complete")},
        "critique": {"type": "string", "minLength": 3, "maxLength": 300},
    },
    "required": ["specific", "distinct", "complete", "critique"],
}
WORK = {"type": "object", "properties": {"output": {"type": "string", "minLength": 1}}, "required": ["output"]}


def strings():
    return st.tuples(st.integers(0, 12), st.integers(0, 40)).map(
        lambda each: {"type": "string", "minLength": each[0], "maxLength": each[0] + each[1]}
    )


def integers():
    return st.tuples(st.integers(0, 1200), st.integers(0, 1200)).map(
        lambda each: {"type": "integer", "minimum": each[0], "maximum": sum(each)}
    )


def options():
    return st.lists(
        st.one_of(st.text(max_size=5), st.integers(0, 20), st.booleans(), st.none()), min_size=1, max_size=5
    ).map(lambda each: {"enum": each})


plain = st.one_of(strings(), integers(), options(), st.just({"type": "boolean"}), st.just({"type": "null"}))
schemas = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.tuples(inner, st.integers(0, 3), st.integers(0, 3)).map(
            lambda each: {"type": "array", "items": each[0], "minItems": each[1], "maxItems": each[1] + each[2]}
        ),
        st.dictionaries(st.text(max_size=6), inner, max_size=4).map(
            lambda each: {"type": "object", "properties": each, "required": list(each)}
        ),
    ),
    max_leaves=8,
)


def assert_valid(schema, decoder, fed, max_tokens):
    value = json.loads(decoder.text)
    assert value == decoder.value
    assert grammar.fault(schema, value) == ""
    assert len(fed) == decoder.count <= max_tokens
    assert not any(ord(each) < 32 for each in decoder.text)


@settings(max_examples=300, deadline=None)
@given(schemas, st.integers(0, 2**32), st.integers(0, 200))
def test_random_schema_any_budget(schema, seed, max_tokens):
    decoder, fed = run(schema, seed, max_tokens, favour=[ord('"'), ord("0"), ord(",")] if seed % 2 else [])
    assert_valid(schema, decoder, fed, max_tokens)


@pytest.mark.parametrize("schema", [DRAFT, JUDGE, WORK], ids=["draft", "judge", "work"])
def test_our_schemas_any_budget(schema):
    rng = random.Random(5)
    for seed in range(60):
        max_tokens = rng.choice([0, 1, 2, 5, 20, 80, 300, 2000])
        decoder, fed = run(schema, seed, max_tokens, favour=[ord('"')])
        assert_valid(schema, decoder, fed, max_tokens)
        assert decoder.cut or max_tokens >= 20


def test_the_stream_is_the_answer_when_it_isnt_cut():
    for seed in range(20):
        decoder = Decoder(VOCABULARY, Sampler(seed, 1.0), DRAFT, 5000)
        rng = np.random.default_rng(seed)
        heard = decoder.take_stream()
        while not decoder.done:
            logits = rng.normal(0, 3, VOCABULARY.size).astype(np.float32)
            logits[ord('"')] += 6
            decoder.take_tokens()
            decoder.sample(logits)
            heard += decoder.take_stream()
        assert not decoder.cut
        assert json.loads(heard)["steps"][0]["after"] == decoder.value["steps"][0]["after"]


def test_same_seed_same_answer():
    assert run(DRAFT, 7, 400)[0].text == run(DRAFT, 7, 400)[0].text


def test_half_an_item_that_nobody_requires_is_dropped():
    for budget in range(200, 900, 50):
        decoder, _ = run(DRAFT, 3, budget, favour=[ord('"')])
        if decoder.cut and len(decoder.value["steps"]) > 2:
            assert all(each["title"].strip(grammar.FILLER) for each in decoder.value["steps"])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "a+"},
        {"type": "integer", "minimum": -3},
        {"anyOf": [{"type": "string"}]},
        {"type": "object", "properties": {}, "required": ["a"]},
        {"enum": []},
        {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 2},
    ],
)
def test_what_cant_be_promised_is_refused(schema):
    with pytest.raises(grammar.SchemaError):
        grammar.check(schema)


def test_free_text_ends_with_the_models_end_or_the_budget():
    decoder, fed = run(None, 1, 10)
    assert decoder.done
    assert decoder.cut
    assert len(fed) == 10
    decoder, _ = run(None, 1, 500, favour=[VOCABULARY.size - 1] * 3)
    assert decoder.done
    assert not decoder.cut
