"""The engine against the usual ways, on the recorded requests of a six-agent swarm, in one run.

    python -m tests.benchmarks.engine [--requests small|full] [--model M] [--rounds 2] [--json]

The requests are those that engine_record.py has recorded: with the short prompts that small models get, or with the
full ones. Contestants:

- naive: one `llama_cpp.Llama` behind a lock, JSON by its grammar, one request after the other
- server: xllamacpp's (llama.cpp's own server), with as many slots as there are agents; with and without a unified KV
  cache. `pip install xllamacpp`, or this package with the extra `bench`
- engine: ours, with as many slots

Six workers take the requests in the recorded order, about a whole plan. A round is all contestants one after the other,
each in a process of its own; the figures are over all rounds. All sample alike, or else the answers would be of very
different lengths. The first requests of each warm it up, the rest is the steady state. A likelihood pair is two texts
weighed after a long prefix. The engine also runs on the copy of the bundled model that it makes for itself (see
docs/engine.md). Ratios count, not times: a machine that others use is slow for all.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import trio

from swarmtui.llm import models, swift
from swarmtui.llm.client import EngineModel
from swarmtui.llm.engine_cache import shared
from swarmtui.llm.machine import EngineSettings, physical_cores
from swarmtui.llm.model import Likelihood, Request
from swarmtui.llm.process import environment
from swarmtui.llm.sampler import MIN_P, REPEAT_PENALTY, REPEAT_WINDOW

REQUESTS, MOST = "SWARMTUI_BENCH_REQUESTS", "SWARMTUI_BENCH_MOST"
AGENTS = 6
WARM = 12
CONTEXT = 2_048
SAMPLING = {"min_p": MIN_P, "repeat_penalty": REPEAT_PENALTY, "top_k": 0, "top_p": 1.0}
"""As the engine samples, in llama.cpp's words."""
PREFIX = (
    "Task: Plan a two-week trip to Japan for a family of four that likes food, gardens and trains\n" * 12 + "A step: "
)
PAIRS = [
    ["Book return flights and a rail pass", "Get started with the things to do"],
    ["Reserve a garden tour in Kyoto", "Think about what may be needed"],
    ["List dishes that the children will eat", "Do the rest of the work as well"],
]


def recorded() -> list[Request]:
    """What was recorded. Which file, and how much of it, the processes of the contestants find in their environment."""
    data = json.loads(Path(__file__).with_name(f"engine_{os.environ[REQUESTS]}.json").read_text("utf-8"))
    return [msgspec.convert(each, Request) for each in data][: int(os.environ[MOST])]


def least() -> float:
    """What share of the steady state's prompts (in characters) no cache could spare: no earlier one began with it."""
    prompts = [f"{each.system}\0{each.prompt}" for each in recorded()]
    known = [max(shared(text, other) for other in prompts[:i]) for i, text in enumerate(prompts) if i >= WARM]
    return 1 - sum(known) / sum(map(len, prompts[WARM:]))


class Tally:
    """What came of a contestant's requests."""

    def __init__(self) -> None:
        self.tokens = self.prompt = self.cached = self.valid = self.asked = 0
        self.seconds = 0.0
        self.kinds: dict[str, tuple[int, int]] = {}
        """Prompt tokens, and of them cached, by what was asked."""

    def take(self, request: Request, text: str, tokens: int, prompt: int, cached: int) -> None:
        """An answer came."""
        self.tokens += tokens
        self.prompt += prompt
        self.cached += cached
        before, known = self.kinds.get(request.purpose, (0, 0))
        self.kinds[request.purpose] = (before + prompt, known + cached)
        if request.schema is not None:
            self.asked += 1
            try:
                json.loads(text)
                self.valid += 1
            except ValueError:
                pass

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return vars(self)


def timed(tally: Tally, work: Callable[[], object]) -> None:
    """Run it; its time is the tally's."""
    began = time.perf_counter()
    work()
    tally.seconds = time.perf_counter() - began


def messages(request: Request) -> list[dict[str, str]]:
    """A request in OpenAI's form."""
    return [{"role": "system", "content": request.system}, {"role": "user", "content": request.prompt}]


def naive(path: str) -> dict[str, Any]:
    """One Llama, one request after the other; it keeps what the prompt shares with the last one."""
    from llama_cpp import Llama

    llama = Llama(path, n_ctx=CONTEXT, verbose=False, n_threads=physical_cores())
    tallies = [Tally(), Tally()]
    requests = recorded()

    def ask(tally: Tally, some: list[Request]) -> None:
        for request in some:
            form = {"type": "json_object", "schema": request.schema} if request.schema else None
            reply: Any = llama.create_chat_completion(
                messages(request),  # type: ignore[arg-type]
                response_format=form,  # type: ignore[arg-type]
                max_tokens=request.max_tokens,
                temperature=request.temperature,
                seed=request.seed,
                **SAMPLING,
            )
            text, usage = reply["choices"][0]["message"]["content"] or "", reply["usage"]
            tally.take(request, text, usage["completion_tokens"], usage["prompt_tokens"], 0)

    for tally, some in zip(tallies, (requests[:WARM], requests[WARM:]), strict=True):
        timed(tally, partial(ask, tally, some))
    scorer = Llama(path, n_ctx=CONTEXT, verbose=False, logits_all=True, n_threads=physical_cores())
    pairs = []
    for pair in PAIRS:
        began = time.perf_counter()
        for text in pair:
            tokens = scorer.tokenize((PREFIX + text).encode())
            scorer.reset()
            scorer.eval(tokens)
            for row in scorer.scores[len(tokens) - 9 : len(tokens) - 1]:
                Llama.logits_to_logprobs(row)
        pairs.append(time.perf_counter() - began)
    return {"first": tallies[0].facts(), "steady": tallies[1].facts(), "pair": median(pairs)}


def server(path: str, unified: bool) -> dict[str, Any]:
    """llama.cpp's own server, asked by six threads."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = CONTEXT * AGENTS
    params.n_parallel = AGENTS
    params.kv_unified = unified
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = physical_cores()
    params.warmup = True
    running = xllamacpp.Server(params)
    tallies = [Tally(), Tally()]
    requests = recorded()
    lock = threading.Lock()

    def worker(tally: Tally, some: list[Request]) -> None:
        while True:
            with lock:
                if not some:
                    return
                request = some.pop(0)
            body: dict[str, Any] = {
                "messages": messages(request),
                "max_tokens": request.max_tokens,
                "temperature": request.temperature,
                "seed": request.seed,
                "cache_prompt": True,
                "repeat_last_n": REPEAT_WINDOW,
                **SAMPLING,
            }
            if request.schema:
                form = {"name": "answer", "schema": request.schema}
                body["response_format"] = {"type": "json_schema", "json_schema": form}
            reply = running.handle_chat_completions(body)
            if isinstance(reply, str | bytes):
                reply = json.loads(reply)
            usage = reply["usage"]
            cached = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
            text = reply["choices"][0]["message"]["content"] or ""
            with lock:
                tally.take(request, text, usage["completion_tokens"], usage["prompt_tokens"], cached)

    def ask(tally: Tally, some: list[Request]) -> None:
        threads = [threading.Thread(target=worker, args=(tally, some)) for _ in range(AGENTS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    for tally, some in zip(tallies, (requests[:WARM], requests[WARM:]), strict=True):
        timed(tally, partial(ask, tally, some))
    return {"first": tallies[0].facts(), "steady": tallies[1].facts()}


def engine(path: str) -> dict[str, Any]:
    """Ours."""
    return trio.run(_engine, path)


async def _engine(path: str) -> dict[str, Any]:
    model = EngineModel(Path(path), EngineSettings(slots=AGENTS))
    tallies = [Tally(), Tally()]
    requests = recorded()

    async def worker(tally: Tally, some: list[Request]) -> None:
        while some:
            request = some.pop(0)
            reply = await model.generate(request)
            tally.take(request, reply.text, reply.tokens_out, reply.tokens_in, reply.tokens_cached)

    found: dict[str, Any] = {}
    async with trio.open_nursery() as nursery:
        await nursery.start(model.run)
        await model.ready()
        for tally, some in zip(tallies, (requests[:WARM], requests[WARM:]), strict=True):
            began = time.perf_counter()
            async with trio.open_nursery() as workers:
                for _ in range(AGENTS):
                    workers.start_soon(worker, tally, some)
            tally.seconds = time.perf_counter() - began
        pairs = []
        for pair in PAIRS:
            began = time.perf_counter()
            await model.likelihood(Likelihood(agent="scorer", prefix=PREFIX, continuations=pair))
            pairs.append(time.perf_counter() - began)
        found = {"pair_cold": pairs[0], "pair": median(pairs[1:])}
        nursery.cancel_scope.cancel()
    return found | {"first": tallies[0].facts(), "steady": tallies[1].facts()}


def _child(work: Callable[[], dict[str, Any]], channel: Any) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    channel.send(work())


def alone(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """In a process of its own, in the environment that the engine has as well."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(False)
    child = context.Process(target=_child, args=(work, send))
    child.start()
    send.close()
    try:
        found: dict[str, Any] = receive.recv()
    except EOFError:
        raise SystemExit(f"{work} died") from None
    child.join()
    return found


def contestants(path: str, copy: str | None) -> dict[str, Callable[[], dict[str, Any]]]:
    """Who takes part, by name."""
    found: dict[str, Callable[[], dict[str, Any]]] = {"naive, behind a lock": partial(naive, path)}
    try:
        import xllamacpp  # noqa: F401
    except ImportError:
        print("xllamacpp isn't installed: the server is left out", file=sys.stderr)
    else:
        found["xllamacpp's server, unified KV"] = partial(server, path, True)
        found["xllamacpp's server"] = partial(server, path, False)
    found["engine"] = partial(engine, path)
    if copy is not None:
        found["naive on the engine's copy"] = partial(naive, copy)
        if "xllamacpp's server" in found:
            found["xllamacpp's server on the engine's copy"] = partial(server, copy, False)
        found["engine on its copy"] = partial(engine, copy)
    return found


def summed(rounds: list[dict[str, Any]], when: str) -> dict[str, float]:
    """All rounds of a contestant together."""
    return {key: sum(each[when][key] for each in rounds) for key in rounds[0][when] if key != "kinds"}


def by_kind(rounds: list[dict[str, Any]]) -> str:
    """What share of the prompts was evaluated in the steady state, by what was asked."""
    parts: dict[str, list[tuple[int, int]]] = {}
    for each in rounds:
        for kind, counts in each["steady"]["kinds"].items():
            parts.setdefault(kind, []).append(counts)
    shares = {kind: 1 - sum(c for _, c in counts) / sum(p for p, _ in counts) for kind, counts in parts.items()}
    return ", ".join(f"{kind} {share:.0%}" for kind, share in shares.items())


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    """One Markdown table."""
    rate = {}
    for name, rounds in results.items():
        steady = summed(rounds, "steady")
        rate[name] = steady["tokens"] / steady["seconds"]
    first = next(iter(rate))
    slow_pair = median(each["pair"] for each in results[first]) if "pair" in results[first][0] else None
    rows = [
        "| | tokens/s | × naive | tokens | seconds | prompt evaluated | valid JSON | likelihood pair |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, rounds in results.items():
        steady = summed(rounds, "steady")
        share = f"{1 - steady['cached'] / steady['prompt']:.0%}" if steady["cached"] else "–"
        pair = f"{median(each['pair'] for each in rounds) * 1000:.0f} ms" if "pair" in rounds[0] else "–"
        if "pair_cold" in rounds[0] and slow_pair is not None:
            pair += f" (1/{slow_pair / median(each['pair'] for each in rounds):.0f})"
        rows.append(
            f"| {name} | {rate[name]:.1f} | {rate[name] / rate[first]:.2f} "
            f"| {steady['tokens']:.0f} | {steady['seconds']:.0f} | {share} "
            f"| {steady['valid']:.0f}/{steady['asked']:.0f} | {pair} |"
        )
    for name, rounds in results.items():
        if summed(rounds, "steady")["cached"]:
            rows += ["", f"Evaluated, {name}: {by_kind(rounds)}"]
    rows += ["", f"No cache could do with less than {least():.0%} of the prompts: the rest is new."]
    return "\n".join(rows)


def main() -> None:
    """Run all and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", choices=["small", "full"], default="full")
    parser.add_argument("--most", type=int, default=54, help="so many requests")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--model", default="auto")
    parser.add_argument("--spin", type=int, help="rounds that waiting threads spin, for all (GOMP_SPINCOUNT)")
    parser.add_argument("--only", action="append", help="contestants whose name holds this")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ[REQUESTS], os.environ[MOST] = options.requests, str(options.most)
    if options.spin is not None:
        os.environ["GOMP_SPINCOUNT"] = str(options.spin)
    # All get what the engine gives itself.
    os.environ.update({key: value for key, value in environment().items() if key.startswith(("OMP", "GOMP"))})
    file = models.choose(options.model)
    with tempfile.TemporaryDirectory() as folder:
        made = trio.run(swift.prepare, file, EngineSettings(), Path(folder)).file
        copy = str(made.path) if made.path != file.path else None
        taking_part = contestants(str(file.path), copy)
        if options.only:
            taking_part = {name: work for name, work in taking_part.items() if any(o in name for o in options.only)}
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in taking_part}
        for _ in range(options.rounds):
            for name, work in taking_part.items():
                began = time.perf_counter()
                results[name].append(alone(work))
                print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    print(json.dumps(results, indent=1) if options.json else table(results))


if __name__ == "__main__":
    main()
