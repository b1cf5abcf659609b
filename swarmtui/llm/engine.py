"""The engine: a process of its own that holds one model and answers all local agents.

Started as `python -m swarmtui.llm.engine`. Reads messages (see `wire`) from its stdin and answers on its stdout; all
else that anybody prints goes to stderr, which the client points at a log file. It ends when its stdin closes, so it
can't outlive the swarm.

All requests in work share each step: one batch with the next token (or the next fixed ones) of every answer and a piece
of the prompts that are still being read. A step is kept short, so that a cancelled request is gone within it.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

from swarmtui.llm import wire
from swarmtui.llm.decoder import Decoder
from swarmtui.llm.engine_cache import Cache, shared
from swarmtui.llm.engine_chat import Chat
from swarmtui.llm.engine_jobs import Job, Lane, Weighing, Writing
from swarmtui.llm.engine_llama import Unusable, Weights
from swarmtui.llm.engine_pulse import Pulse
from swarmtui.llm.engine_tuning import measure
from swarmtui.llm.grammar import SchemaError
from swarmtui.llm.machine import physical_cores, total_memory
from swarmtui.llm.memory import BATCH, CONTEXT, EXPRESS, LEAST_CONTEXT, PIN_TOKENS, PINS, SLOTS, cells
from swarmtui.llm.sampler import Sampler
from swarmtui.llm.tuning import choose_width

STEP_S = 0.25
"""How long a step that reads prompts may take: so much later a cancelled request ends, at worst."""
LEAST_CHUNK = 32
WORTH_WAITING = 16
"""Tokens that another request is reading anyway."""
SPARE = 8
"""Tokens of the context that stay free."""


class Engine:
    """The model, its cache and the requests in work."""

    def __init__(self, order: wire.Open, tell: Callable[[wire.FromEngine], None]) -> None:
        """Load what the order says.

        Args:
            order: from the client.
            tell: says something to it at once.

        Raises:
            Unusable: this model can't be used here.
        """
        began = time.perf_counter()
        self.pulse = Pulse(tell)
        self.threads = order.threads or physical_cores()
        self.pulse.waits()
        self._weights = Weights(
            order.path, threads=self.threads, gpu_layers=order.gpu_layers, loading=self.pulse.within
        )
        self.notices: list[str] = []
        self.slots = order.slots or SLOTS
        self.context = self._context(order.context)
        self.pulse.waits()
        self._weights.open_context(cells(self.slots, self.context), self.slots + EXPRESS + PINS)
        self._chat = Chat(self._weights.template, self._weights.vocabulary)
        self.notices += self._chat.notices
        self._cache = Cache(self._weights, self.slots + EXPRESS, PINS, PIN_TOKENS)
        self._waiting: list[wire.Generate | wire.Weigh] = []
        self._jobs: list[Job] = []
        self._chunk = 64
        self.seconds = time.perf_counter() - began
        self.prefill, self.speeds = self._measure() if order.measure else (0.0, [])
        self.width = order.width or choose_width(self.speeds, self.slots)

    def _measure(self) -> tuple[float, list[wire.Speed]]:
        self.pulse.waits()
        self._weights.watch(self.pulse.within)
        try:
            return measure(self._weights, self._chat.raw("The quick brown fox jumps over the lazy dog. "), self.slots)
        finally:
            self._weights.watch(None)

    @property
    def busy(self) -> bool:
        """Whether there's anything to do."""
        return bool(self._waiting or self._jobs)

    def accept(self, message: wire.ToEngine) -> list[wire.FromEngine]:
        """Take a request or a cancellation; returns what there's to answer at once."""
        if isinstance(message, wire.Generate | wire.Weigh):
            self._waiting.append(message)
        elif isinstance(message, wire.Cancel):
            found = [each for each in self._jobs if each.id == message.id]
            for job in found:
                self._end(job)
            if found:
                return [found[0].stopped()]
            kept = [each for each in self._waiting if each.id != message.id]
            if len(kept) < len(self._waiting):
                self._waiting = kept
                return [wire.Stopped(message.id)]
        return []

    def step(self) -> list[wire.FromEngine]:
        """Evaluate one batch; returns what there's to tell."""
        told = self._admit()
        plan = self._plan()
        if not plan:
            return told + self._tell()
        entries = [entry for _, _, some in plan for entry in some]
        began = time.perf_counter()
        self._weights.watch(self.pulse.within if self.pulse.begin() else None)
        code = self._weights.decode(entries)
        self.pulse.end()
        if code:
            return told + self._failed(code, [job for job, _, _ in plan])
        at = 0
        for job, lane, some in plan:
            job.took(lane, lambda i, at=at: self._weights.logits(at + i))  # type: ignore[misc]
            at += len(some)
        self._adapt(len(entries), time.perf_counter() - began)
        return told + self._tell()

    def _context(self, wanted: int) -> int:
        """Tokens per request: as asked, as trained, as memory allows."""
        trained = self._weights.trained_context or CONTEXT
        if trained < LEAST_CONTEXT:
            raise Unusable(
                f"this model's context of {trained} tokens is too small", f"choose one with at least {LEAST_CONTEXT}"
            )
        if wanted and wanted < LEAST_CONTEXT:
            raise Unusable(f"a context of {wanted} tokens is too small", f"set llm.context to {LEAST_CONTEXT} or more")
        if wanted > trained:
            self.notices.append(f"the model was trained for {trained} tokens: the context is that, not {wanted}")
        context = min(wanted or CONTEXT, trained)
        memory = total_memory()
        needed = self._weights.bytes + self._weights.cell_bytes() * cells(self.slots, context)
        if memory and needed > memory:
            raise Unusable(
                f"the model and its context need {needed >> 20} MiB of memory, this machine has {memory >> 20} MiB",
                "choose a smaller model or quantisation, or set llm.slots or llm.context lower",
            )
        return context

    def _admit(self) -> list[wire.FromEngine]:
        """Give waiting requests their slots: the urgent first, else in the order in which they came."""
        told: list[wire.FromEngine] = []
        later: list[wire.Generate | wire.Weigh] = []
        for request in sorted(self._waiting, key=lambda each: -each.priority):
            try:
                job = self._write(request) if isinstance(request, wire.Generate) else self._weigh(request)
            except (SchemaError, Unusable) as error:
                told.append(wire.Failed(request.id, str(error), getattr(error, "remedy", "")))
                continue
            if job is None:
                later.append(request)
            else:
                self._jobs.append(job)
        self._waiting = later
        return told

    def _write(self, request: wire.Generate) -> Job | None:
        prefix, rest = self._chat.tokens(request.system, request.prompt)
        room = self.context - SPARE - len(prefix) - len(rest)
        if room < 16:
            self._too_long(len(prefix) + len(rest))
        if self._being_read(prefix + rest):
            return None
        slot = self._cache.take(prefix + rest)
        if slot is None:
            return None
        try:
            sampler = Sampler(request.seed, request.temperature)
            decoder = Decoder(self._weights.vocabulary, sampler, request.schema, min(room, request.max_tokens))
        except SchemaError:
            self._cache.free(slot, len(slot.tokens))
            raise
        return Writing(request, self._cache, slot, prefix, rest, decoder)

    def _weigh(self, request: wire.Weigh) -> Job | None:
        words = self._weights.vocabulary
        prefix = self._chat.raw(request.prefix) or words.tokens("\n")
        texts = [words.tokens(each) for each in request.continuations]
        if len(prefix) + max(map(len, texts), default=0) > self.context - SPARE:
            self._too_long(len(prefix) + max(map(len, texts)))
        slot = None if self._being_read(prefix) else self._cache.take(prefix)
        return None if slot is None else Weighing(request, self._cache, slot, prefix, texts)

    def _being_read(self, tokens: list[int]) -> bool:
        """Whether another request is reading much of the same just now: then wait for it instead of reading it too."""
        known = self._cache.known(tokens)
        return any(shared(each.prompt, tokens) >= known + WORTH_WAITING for each in self._jobs if each.evaluating)

    def _too_long(self, tokens: int) -> None:
        raise Unusable(
            f"a prompt of {tokens} tokens doesn't fit the context of {self.context}",
            "set llm.context higher, or choose a model with a larger one",
        )

    def _plan(self) -> list[tuple[Job, Lane, list[tuple[int, int, int, bool]]]]:
        """The next batch: first what answers go on with, then as much of the prompts as the step's time allows.

        Of the answers as many go on as is fastest; the urgent first, then those that began first, so that they're done.
        """
        jobs = sorted((job for job in self._jobs if not job.done), key=lambda job: -job.priority)
        resting = [job for job in jobs if job.writes and not job.evaluating][self.width :]
        lanes = [(job, lane) for job in jobs if job not in resting for lane in job.lanes() if lane.queue]
        lanes.sort(key=lambda each: each[0].evaluating)
        plan = []
        room, chunk = BATCH, self._chunk
        for job, lane in lanes:
            most = min(room, chunk) if job.evaluating or len(lane.queue) > LEAST_CHUNK else room
            if most <= 0:
                continue
            entries = lane.send(most)
            plan.append((job, lane, entries))
            room -= len(entries)
            chunk -= len(entries)
        return plan

    def _tell(self) -> list[wire.FromEngine]:
        told: list[wire.FromEngine] = []
        for job in list(self._jobs):
            told += job.report()
            if job.done:
                self._end(job)
        return told

    def _end(self, job: Job) -> None:
        self._jobs.remove(job)
        job.release()

    def _failed(self, code: int, jobs: list[Job]) -> list[wire.FromEngine]:
        """A batch couldn't be evaluated: its requests are lost, their sequences forgotten."""
        told: list[wire.FromEngine] = []
        for job in dict.fromkeys(jobs):
            self._end(job)
            told.append(wire.Failed(job.id, f"llama.cpp couldn't evaluate the batch (code {code})", ""))
        for each in self._cache.idle:
            self._cache.drop(each)
        return told

    def _adapt(self, count: int, seconds: float) -> None:
        """Fit the size of a step to the machine."""
        if count >= LEAST_CHUNK and seconds > 0:
            self._chunk = int(min(BATCH, max(LEAST_CHUNK, 0.5 * self._chunk + 0.5 * count / seconds * STEP_S)))


def _listen(stream: BinaryIO, inbox: queue.SimpleQueue[wire.ToEngine]) -> None:
    """The reading thread. When the client is gone there's nothing left to live for, not even the step in work."""
    while (message := wire.read(stream)) is not None:
        inbox.put(message)
    os._exit(0)


def serve(inbox: queue.SimpleQueue[wire.ToEngine], out: BinaryIO) -> int:
    """Load what the first message orders and answer until the process is ended; 1 if the model can't be used."""
    order = inbox.get()
    assert isinstance(order, wire.Open)

    def say(messages: list[wire.FromEngine]) -> None:
        if messages:
            out.write(b"".join(map(wire.frame, messages)))
            out.flush()

    try:
        engine = Engine(order, lambda message: say([message]))
    except Unusable as error:
        say([wire.Refused(str(error), error.remedy)])
        return 1
    say(
        [
            wire.Ready(
                slots=engine.slots,
                context=engine.context,
                threads=engine.threads,
                notices=engine.notices,
                express=EXPRESS,
                width=engine.width,
                seconds=engine.seconds,
                prefill=engine.prefill,
                speeds=engine.speeds,
            )
        ]
    )
    while True:
        while not engine.busy or not inbox.empty():
            say(engine.accept(inbox.get()))
        if told := engine.step():
            say(told)
            engine.pulse.told()


def main() -> int:
    """Take the pipes for the messages and leave the standard streams to whoever prints."""
    source = os.fdopen(os.dup(0), "rb")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    inbox: queue.SimpleQueue[wire.ToEngine] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(source, inbox), daemon=True).start()
    try:
        code = serve(inbox, out)
    except BrokenPipeError:
        code = 0
    sys.stderr.flush()
    # The reading thread stands in a blocking read: an ordinary exit would wait for it.
    os._exit(code)


if __name__ == "__main__":
    main()
