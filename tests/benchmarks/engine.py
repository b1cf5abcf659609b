"""The engine against the naive way, on the requests of a six-agent swarm, in one run.

    python -m tests.benchmarks.engine [--slots 6] [--json]

Naive: one `llama_cpp.Llama` behind a lock, JSON by its grammar, each request alone. Prints tokens per second of both,
the share of prompt tokens that the engine evaluated, and the time to weigh a pair of texts. Ratios count, not times: a
machine that others use is slow for both.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

import trio

from swarmtui.llm import models
from swarmtui.llm.client import EngineModel
from swarmtui.llm.machine import EngineSettings
from swarmtui.llm.model import Likelihood, Request

RULES = {
    "decomposer": "You split a task into steps. ",
    "scorer": "You judge how well a list of steps does a task. ",
    "executor": "You carry out one step of a plan and write the result. ",
}
MANNERS = (
    "Every step is one short, concrete instruction that starts with a verb and names what it's about. No step repeats "
    "another step or the task itself. Together the steps do the whole task and no more. Use names, numbers, choice "
    "and lists. Use what you are told. Leave out greetings, introductions and remarks about yourself. Write in the "
    "language of the task. Answer in JSON only. "
)
TASKS = [
    "Paint the living room",
    "Bake bread for forty guests",
    "Start a walking club",
    "Move the archive to a dry cellar",
]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "minItems": 3,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string", "minLength": 4, "maxLength": 60},
                    "atomic": {"type": "boolean"},
                },
                "required": ["title", "atomic"],
            },
        },
        "rationale": {"type": "string", "maxLength": 80},
    },
    "required": ["steps", "rationale"],
}
PREFIX = (
    "Task: Plan a two-week trip to Japan for a family of four that likes food, gardens and trains\n" * 12 + "A step: "
)
PAIR = ["Book return flights and a rail pass", "Get started with the things to do"]


def requests() -> list[Request]:
    """Two requests of each of six agents, in three roles."""
    found = []
    for turn in range(2):
        for agent in range(6):
            role = list(RULES)[agent % 3]
            found.append(
                Request(
                    agent=f"agent{agent}",
                    purpose="draft",
                    subject="",
                    system=RULES[role] + MANNERS * 3,
                    prompt=f"Task: {TASKS[(agent + turn) % len(TASKS)]}\nGive three steps as JSON.",
                    schema=SCHEMA,
                    max_tokens=120,
                    seed=agent * 2 + turn,
                )
            )
    return found


def naive(path: str, channel: Any) -> None:
    """One Llama, one request after the other."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    from llama_cpp import Llama

    llama = Llama(path, n_ctx=2048, verbose=False, n_threads=len(os.sched_getaffinity(0)))
    tokens, valid = 0, 0
    began = time.perf_counter()
    for request in requests():
        reply: Any = llama.create_chat_completion(
            [{"role": "system", "content": request.system}, {"role": "user", "content": request.prompt}],
            response_format={"type": "json_object", "schema": request.schema},
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            seed=request.seed,
        )
        tokens += reply["usage"]["completion_tokens"]
        try:
            json.loads(reply["choices"][0]["message"]["content"])
            valid += 1
        except ValueError:
            pass
    seconds = time.perf_counter() - began
    scorer = Llama(path, n_ctx=2048, verbose=False, logits_all=True, n_threads=len(os.sched_getaffinity(0)))
    began = time.perf_counter()
    for text in PAIR:
        scorer.reset()
        scorer.eval(scorer.tokenize((PREFIX + text).encode()))
        for row in scorer.scores[scorer.n_tokens - 9 : scorer.n_tokens - 1]:
            Llama.logits_to_logprobs(row)
    channel.send({"tokens": tokens, "seconds": seconds, "valid": valid, "pair": time.perf_counter() - began})


async def ours(path: Path, slots: int) -> dict[str, Any]:
    """The engine, all agents at once; a second round shows the steady state."""
    model = EngineModel(path, EngineSettings(slots=slots))
    found: dict[str, Any] = {"slots": slots}

    async def agent(name: str, replies: list[Any]) -> None:
        for request in requests():
            if request.agent == name:
                replies.append(await model.generate(request))

    async with trio.open_nursery() as nursery:
        await nursery.start(model.run)
        await model.ready()
        for when in ("first", "steady"):
            replies: list[Any] = []
            began = time.perf_counter()
            async with trio.open_nursery() as agents:
                for i in range(6):
                    agents.start_soon(agent, f"agent{i}", replies)
            found[when] = {
                "tokens": sum(each.tokens_out for each in replies),
                "seconds": time.perf_counter() - began,
                "valid": sum(each.value is not None for each in replies),
                "evaluated": 1 - sum(each.tokens_cached for each in replies) / sum(each.tokens_in for each in replies),
            }
        for when in ("pair_cold", "pair_warm"):
            began = time.perf_counter()
            await model.likelihood(Likelihood(agent="agent1", prefix=PREFIX, continuations=PAIR))
            found[when] = time.perf_counter() - began
        nursery.cancel_scope.cancel()
    return found


def main() -> None:
    """Run both and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=6)
    parser.add_argument("--model", default="auto")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    path = models.choose(options.model).path
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(False)
    child = context.Process(target=naive, args=(str(path), send))
    child.start()
    send.close()
    one = receive.recv()
    child.join()
    other = trio.run(ours, path, options.slots)
    if options.json:
        json.dump({"naive": one, "engine": other}, sys.stdout, indent=1)
        return
    rate = one["tokens"] / one["seconds"]
    print(f"{'':24}{'tokens/s':>9}{'ratio':>7}{'valid':>7}{'prompt evaluated':>18}")
    print(f"{'naive, behind a lock':24}{rate:9.1f}{1:7.1f}{one['valid']:4}/12{'':>18}")
    for when in ("first", "steady"):
        now = other[when]["tokens"] / other[when]["seconds"]
        share = f"{other[when]['evaluated']:.0%}"
        print(f"{f'engine, {when} round':24}{now:9.1f}{now / rate:7.1f}{other[when]['valid']:4}/12{share:>18}")
    for when in ("pair_cold", "pair_warm"):
        share = f"1/{one['pair'] / other[when]:.0f}"
        print(f"likelihood {when}: {other[when] * 1000:.0f} ms, naive {one['pair'] * 1000:.0f} ms: {share}")


if __name__ == "__main__":
    main()
