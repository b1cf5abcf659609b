"""A model on a server: what is asked of it, what is made of its answers, and every way in which it may fail."""

import json
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
import trio.testing
from msgspec.structs import replace as replace_struct

from swarmtui.llm.model import Likelihood, ModelError, Request
from swarmtui.llm.remote import http
from swarmtui.llm.remote.address import is_address, parse
from swarmtui.llm.remote.meeting import meet
from swarmtui.llm.remote.model import RemoteModel
from tests.llm.remote_server import Answer, Server, data, refusal, server, spoken

SCHEMA = {
    "type": "object",
    "properties": {
        "steps": {"type": "array", "items": {"type": "string", "maxLength": 12}, "minItems": 1, "maxItems": 3},
        "why": {"type": "string"},
    },
    "required": ["steps", "why"],
}
GOOD = {"steps": ["book", "pack"], "why": "so"}
SECRET = "sk-very-secret"


def request(agent="ada", schema=None, **more):
    return Request(
        agent=agent,
        purpose="draft",
        subject="Trip",
        system="You plan.",
        prompt="Plan a trip",
        schema=schema,
        max_tokens=64,
        **more,
    )


@asynccontextmanager
async def met(here: Server, spec: str = "", **settings):
    """A model on the server, met."""
    async with unmet(here, spec, **settings) as model:
        await model.ready()
        yield model


@asynccontextmanager
async def unmet(here: Server, spec: str = "", **settings):
    model = RemoteModel(parse(spec or here.url), **{"first_pause_s": 0.01, **settings})
    async with trio.open_nursery() as nursery:
        with trio.fail_after(60):
            await nursery.start(model.run)
            yield model
        nursery.cancel_scope.cancel()


# Addresses


def test_addresses():
    found = parse("http://127.0.0.1:8080/v1#qwen3:4b")
    assert (found.base, found.root, found.model) == ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080", "qwen3:4b")
    assert found.here
    assert not found.leaves
    assert parse("http://localhost:11434").base == "http://localhost:11434/v1"
    assert parse("http://[::1]:80/v1/").base == "http://[::1]:80/v1"
    assert parse("https://Box.Example/api/v1").base == "https://box.example/api/v1"
    assert "in the clear" in parse("http://192.168.1.7:8080/v1").leaves
    assert "sent to box.lan, encrypted" in parse("https://box.lan/v1").leaves
    assert is_address(" HTTP://x/v1")
    assert not is_address("/models/http.gguf")


@pytest.mark.parametrize(
    "spec", ["http://", "http://:8080/v1", "http://a b/v1", "http://x:99999/v1", "http://x/v1?key=1", "http://[::1/v1"]
)
def test_what_is_no_address_says_what_one_looks_like(spec):
    with pytest.raises(ModelError) as caught:
        parse(spec)
    assert "http://127.0.0.1:8080/v1" in caught.value.remedy


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(ModelError) as caught:
        parse(f"http://ada:{SECRET}@box/v1")
    assert SECRET not in str(caught.value) + caught.value.remedy


# Meeting


async def test_the_only_model_is_taken():
    async with server() as here, met(here) as model:
        assert model.name == "small-1B-instruct (server)"
        assert model.judging == "none"
        assert model.notices == ["small-1B-instruct (server) offers no likelihoods: scorers ask it for written marks."]
        with pytest.raises(ModelError):
            await model.likelihood(Likelihood(agent="a", prefix="x", continuations=["y"]))


async def test_one_of_several_has_to_be_named():
    async with server() as here:
        here.names = ("qwen3:4b", "llama3.2:3b")
        async with unmet(here) as model:
            with pytest.raises(ModelError, match="several models") as caught:
                await model.ready()
            assert f"{here.url}#qwen3:4b" in caught.value.remedy
        async with unmet(here, f"{here.url}#mistral") as model:
            with pytest.raises(ModelError, match="has no model mistral") as caught:
                await model.ready()
            assert "llama3.2:3b" in caught.value.remedy
        async with met(here, f"{here.url}#LLAMA") as model:
            assert model.name == "llama3.2:3b (server)"


async def test_a_server_that_lists_nothing_is_taken_at_its_word():
    async with server() as here:
        here.names = ()
        async with unmet(here) as model:
            with pytest.raises(ModelError, match="has no model"):
                await model.ready()


async def test_nobody_there():
    here = Server()
    with trio.socket.socket() as held:
        await held.bind(("127.0.0.1", 0))  # bound, not listening: refused, and nobody else gets the port meanwhile
        here.port = held.getsockname()[1]
        async with unmet(here) as model:
            with pytest.raises(ModelError, match="can't be reached: Connection refused") as caught:
                await model.ready()
            assert "start the server" in caught.value.remedy
            assert caught.value.away


def test_a_person_is_told_why_a_server_cant_be_met():
    with pytest.raises(ModelError, match="can't be reached"):
        meet("http://127.0.0.1:1/v1", "", "")


async def test_llama_server_tells_its_slots_and_context():
    async with server() as here:

        async def handler(asked):
            if asked.path == "/props":
                return data({"default_generation_settings": {"n_ctx": 2048}, "total_slots": 2})
            return refusal(404, "no")

        here.handler = handler
        async with met(here) as model:
            assert (model.slots, model.context) == (2, 2048)
        async with met(here, slots=7) as model:
            assert model.slots == 7


@pytest.mark.parametrize(
    ("answer", "reason", "remedy"),
    [
        (refusal(401, "Invalid API key"), "wants another key (401: Invalid API key)", "SWARMTUI_API_KEY"),
        (refusal(404, "Not Found"), "doesn't know /v1/models", "ends in /v1"),
        (data({"hello": 1}), "lists no models", "ends in /v1"),
        (Answer([b"<html>router login</html>"], kind="text/html"), "something else than JSON: “<html>router", "API"),
        (Answer([b""], 302, {"Location": "http://127.0.0.1:1/v1"}), "points elsewhere (302)", "address it points to"),
        (data([1]), "lists no models", "ends in /v1"),
    ],
)
async def test_what_isnt_a_model_server_is_told_at_once(answer, reason, remedy):
    async with server() as here:

        async def handler(asked):
            return answer

        here.answer = handler
        async with unmet(here, key=SECRET, key_variable="SWARMTUI_API_KEY") as model:
            with pytest.raises(ModelError) as caught:
                await model.ready()
            assert reason in str(caught.value)
            assert remedy in caught.value.remedy
            assert SECRET not in str(caught.value) + caught.value.remedy
        assert here.asked[0].headers["authorization"] == f"Bearer {SECRET}"


# Answers


async def test_a_text_is_streamed():
    async with server() as here, met(here, key=SECRET) as model:
        here.answers = [spoken("Book the flight.")]
        heard = []
        reply = await model.generate(request(), heard.append)
        assert reply.text == "Book the flight." == "".join(heard)
        assert len(heard) == 3
        assert (reply.tokens_in, reply.tokens_out, reply.cut) == (20, 7, False)
        (body,) = here.bodies()
        assert body["messages"] == [
            {"role": "system", "content": "You plan."},
            {"role": "user", "content": "Plan a trip"},
        ]
        assert (body["model"], body["max_tokens"], body["stream"]) == (here.names[0], 64, True)
        assert here.asked[-1].headers["authorization"] == f"Bearer {SECRET}"
        here.answers = [spoken("Book", finish="length")]
        assert (await model.generate(request())).cut


async def test_a_server_that_doesnt_stream_is_understood():
    async with server() as here, met(here) as model:
        here.answers = [data({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})]
        assert (await model.generate(request())).text == "Hello"


async def test_json_in_the_surest_form_that_the_server_takes():
    forms = []

    async def handler(asked):
        form = asked.body.get("response_format", {}).get("type", "prompt")
        forms.append(form)
        if form != "prompt":
            return refusal(400 if form == "json_schema" else 500, f"response_format {form} isn't supported")
        assert json.dumps(SCHEMA) in asked.body["messages"][1]["content"]
        return spoken(json.dumps(GOOD))

    async with server() as here, met(here) as model:
        here.handler = handler
        for _ in range(2):
            assert (await model.generate(request(schema=SCHEMA))).value == GOOD
        assert forms == ["json_schema", "json_object", "prompt", "prompt"]


async def test_usage_is_left_out_where_a_server_refuses_to_count():
    async with server() as here, met(here) as model:
        here.answers = [refusal(422, "unknown field stream_options"), spoken("one two", pieces=2), spoken("three")]
        assert (await model.generate(request())).text == "one two"
        await model.generate(request())
        assert ["stream_options" in body for body in here.bodies()] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (json.dumps(GOOD), GOOD),
        (f"Here you are:\n```json\n{json.dumps(GOOD)}\n```\nGood luck!", GOOD),
        ('{"steps": ["a", "b", "c", "d", "e"], "why": "so", "more": 1}', {"steps": ["a", "b", "c"], "why": "so"}),
        ('{"why": "so", "steps": ["book the whole flight"]}', {"steps": ["book the who"], "why": "so"}),
        ('{"why": "so", "steps": ["book", "pa', {"steps": ["book"], "why": "so"}),
        ('{"why": 7, "steps": ["book"]}', {"steps": ["book"], "why": "7"}),
    ],
)
async def test_nearly_right_json_is_mended(text, value):
    async with server() as here, met(here) as model:
        here.answers = [spoken(text)]
        assert (await model.generate(request(schema=SCHEMA))).value == value


async def test_wrong_json_is_asked_for_again_and_then_given_up():
    async with server() as here, met(here) as model:
        here.answers = [spoken("I can't"), spoken('{"steps": []}'), spoken(json.dumps(GOOD))]
        assert (await model.generate(request(schema=SCHEMA, seed=5))).value == GOOD
        assert [body["seed"] for body in here.bodies()] == [5, 6, 7]
        assert "can't be used: there is no JSON" in here.bodies()[1]["messages"][1]["content"]
        here.answers = [spoken("no")] * 3
        with pytest.raises(ModelError, match="doesn't answer in the form") as caught:
            await model.generate(request(schema=SCHEMA))
        assert "JSON schema" in caught.value.remedy


# Failures


@pytest.mark.parametrize(
    "bad",
    [
        refusal(429, "slow down", Retry_After="0"),
        refusal(503, "loading model"),
        refusal(500, "oops"),
        Answer([b"<html>"], kind="text/html"),
        Answer([b"data: {broken\n\n"], kind="text/event-stream"),
        Answer([b'data: {"error": {"message": "out of slots"}}\n\n'], kind="text/event-stream"),
        Answer([b'data: {"choices"'], kind="text/event-stream", headers={"Content-Length": "9999"}),
        spoken(""),
        Answer([b"data: [1, 2]\n\ndata: null\n\n"], kind="text/event-stream"),
        spoken("Hel", finish=""),
    ],
)
async def test_what_may_pass_is_tried_again(bad):
    async with server() as here, met(here) as model:
        here.answers = [spoken("Hi")]
        await model.generate(request())
        here.asked.clear()
        here.answers = [bad, bad, spoken("Hello")]
        assert (await model.generate(request())).text == "Hello"
        assert len(here.bodies()) == 3
        assert not any("asked again" in notice for notice in model.notices)


async def test_what_doesnt_pass_is_an_error_with_a_notice():
    async with server() as here, met(here) as model:
        here.answers = [refusal(429, "quota used up")] * 5
        with pytest.raises(ModelError, match="has too much to do"):
            await model.generate(request())
        assert "quota used up" in model.notices[-1]
        assert "use fewer agents" in model.notices[-1]
        here.answers = [spoken("Hello")]
        await model.generate(request())
        assert not any("quota" in notice for notice in model.notices)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (refusal(401, "bad key"), "wants another key"),
        (refusal(404, "model 'x' not found"), "model 'x' not found"),
        (refusal(400, "the request exceeds the available context size"), "context size"),
        (spoken("", reasoning_content="hm"), "spent its answer on thinking"),
    ],
)
async def test_what_cant_pass_isnt_tried_again(bad, reason):
    async with server() as here, met(here) as model:
        here.answers = [bad]
        with pytest.raises(ModelError, match=reason):
            await model.generate(request())
        assert len(here.bodies()) == 1


async def test_silence_is_an_end():
    async with server() as here, met(here, read_s=0.2) as model:
        here.answers = [spoken("Hel", hang=True)] * 5
        with pytest.raises(ModelError, match="said nothing for"):
            await model.generate(request())


async def test_endless_answers_end(monkeypatch):
    monkeypatch.setattr(http, "MAX_LINE", 10_000)
    async with server() as here, met(here) as model:
        here.answers = [Answer([b"data: " + b"x" * 20_000], kind="text/event-stream", hang=True)]
        with pytest.raises(ModelError, match="without end"):
            await model.generate(request())
        monkeypatch.setattr(http, "MAX_BODY", 10_000)
        here.answers = [Answer([b" " * 20_000], hang=True)]
        with pytest.raises(ModelError, match="answered with more than"):
            await model.generate(request())


async def test_a_cancelled_request_closes_its_connection_and_frees_its_place():
    async with server() as here, met(here, slots=1) as model:
        here.answers = [spoken("Hel", hang=True), spoken("Next")]
        begun = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(model.generate, request(), lambda _: begun.set())
            await begun.wait()
            assert not here.gone.is_set()
            nursery.cancel_scope.cancel()
        await here.gone.wait()
        assert (await model.generate(request())).text == "Next"


async def test_no_more_requests_than_slots():
    async with server() as here, met(here, slots=2) as model:
        gate, full = trio.Event(), trio.Event()

        async def handler(asked):
            if here.busy == 2:
                full.set()
            await gate.wait()
            return spoken("ok")

        here.handler = handler
        here.busiest = 0
        wanted = trio.CancelScope()

        async def unwanted():
            with wanted:
                await model.generate(request(agent="late"))

        async with trio.open_nursery() as nursery:
            for i in range(6):
                nursery.start_soon(model.generate, request(agent=f"a{i}"))
            await full.wait()
            nursery.start_soon(unwanted)
            await trio.testing.wait_all_tasks_blocked(0.05)
            wanted.cancel()
            await trio.testing.wait_all_tasks_blocked()
            gate.set()
        assert wanted.cancelled_caught
        assert here.busiest == 2
        assert len(here.bodies()) == 6
        # Every place is free again: as many as before go at once.
        full, here.busiest = trio.Event(), 0
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(model.generate, request())
            await full.wait()
        assert here.busiest == 2


async def test_after_the_end_requests_fail():
    async with server() as here:
        async with met(here) as model:
            pass
        with pytest.raises(ModelError, match="closed"):
            await model.generate(request())


# Likelihoods


def log_probability(token: str, before: str) -> float:
    """A toy model: likes what it has seen already."""
    return -0.1 if before.count(token.strip(" .")) > 1 else -6.0


def split(text: str) -> list[str]:
    return [" " + word if i or text.startswith(" ") else word for i, word in enumerate(text.split())]


async def forced(asked):
    if asked.path == "/tokenize":
        return data({"tokens": list(range(len(split(asked.body["content"]))))})
    if asked.path == "/v1/completions" and "grammar" in asked.body:
        text = json.loads(asked.body["grammar"].removeprefix("root ::= "))
        content = [
            {"token": t, "bytes": list(t.encode()), "logprob": log_probability(t, asked.body["prompt"])}
            for t in split(text)
        ]
        end = {"token": "", "bytes": [], "logprob": -50.0}
        return data({"choices": [{"text": text, "logprobs": {"content": [*content, end]}}]})
    return refusal(404, "no")


def echoing(shift: bool):
    async def echo(asked):
        if asked.path != "/v1/completions" or not asked.body.get("echo"):
            return refusal(404, "no")
        tokens = split(asked.body["prompt"])
        values = [log_probability(t, "".join(tokens[: i or None])) for i, t in enumerate(tokens)]
        if shift:  # llama_cpp.server with a model that has no start token: each figure is that of the next place
            values = [-6.0] * len(values)
        values[0] = None
        offsets = [sum(map(len, tokens[:i])) for i in range(len(tokens))]
        logprobs = {"tokens": tokens, "text_offset": offsets, "token_logprobs": values}
        return data({"choices": [{"text": asked.body["prompt"], "logprobs": logprobs}]})

    return echo


@pytest.mark.parametrize(("handler", "way"), [(forced, "forced"), (echoing(False), "echo")])
async def test_likelihoods_are_read(handler, way):
    async with server() as here:
        here.handler = handler
        async with met(here) as model:
            assert model.judging == way
            assert not model.notices
            ask = Likelihood(agent="ada", prefix="a fox, a fox, a", continuations=[" fox", " fox lamp", " lamp"])
            before = len(here.asked)
            got = []

            async def weigh(agent):
                got.append(await model.likelihood(replace_struct(ask, agent=agent)))

            async with trio.open_nursery() as nursery:
                for agent in ("ada", "bob", "cleo"):
                    nursery.start_soon(weigh, agent)
            assert got == [[-0.1, pytest.approx(-3.05), -6.0]] * 3
            weighed = [each for each in here.asked[before:] if each.path == "/v1/completions"]
            assert len(weighed) == 3, "each text once, however many ask"


async def senseless(asked):
    """A server that knows the fields and means nothing by them: what follows is always the same."""
    if asked.path == "/tokenize":
        return data({"tokens": [1]})
    if asked.body is None:
        return refusal(404, "no")
    text = json.loads(asked.body.get("grammar", "root ::= 0").removeprefix("root ::= ")) or ""
    return data({"choices": [{"text": text, "logprobs": {"token_logprobs": [-1.0] * 2, "text_offset": [0, 1]}}]})


async def ignoring(asked):
    """A server that ignores what it doesn't know, as most do."""
    if asked.path == "/tokenize":
        return data({"tokens": [1, 2]})
    return data({"choices": [{"text": "whatever", "logprobs": None}]})


async def of_llama_cpp_python(asked):
    if asked.path == "/extras/tokenize":
        return await forced(replace(asked, path="/tokenize", body={"content": asked.body["input"]}))
    return refusal(404, "no") if asked.path == "/tokenize" else await forced(asked)


async def test_a_server_that_breaks_answers_off_for_others_is_asked_one_thing_at_a_time():
    async with server() as here:
        here.handler = of_llama_cpp_python
        async with met(here) as model:
            assert (model.judging, model.slots) == ("forced", 1)
        async with met(here, slots=3) as model:
            assert model.slots == 3


async def test_an_answer_without_an_end_is_taken_from_a_server_that_never_tells_one():
    async with server() as here, met(here) as model:
        here.answers = [spoken("Hello", finish=""), spoken("there", finish="")]
        assert [(await model.generate(request())).text for _ in range(2)] == ["Hello", "there"]


@pytest.mark.parametrize("handler", [senseless, ignoring, echoing(True)])
async def test_figures_that_make_no_sense_arent_believed(handler):
    async with server() as here:
        here.handler = handler
        async with met(here) as model:
            assert model.judging == "none"
            assert "written marks" in model.notices[-1]
