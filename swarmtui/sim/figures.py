"""Figures over many runs, and the running of many."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial

from .dice import crowd, scenario
from .judgement import Outcome
from .run import run
from .scenario import Scenario

AHEAD = 32
"""Seeds that wait or are done already, for each process, while an earlier one takes its time."""


def drawn(seed: int, peers: tuple[int, int], kinds: Collection[str] | None, thin: bool = False) -> Scenario:
    """A seed's scenario; `thin`: a large swarm with few agents (of the greater number of peers)."""
    return crowd(seed, peers[1]) if thin else scenario(seed, peers, kinds)


def one(seed: int, peers: tuple[int, int], kinds: Collection[str] | None, thin: bool = False) -> Outcome:
    """Draw and run one scenario."""
    return run(drawn(seed, peers, kinds, thin))


def many(
    seeds: Sequence[int],
    peers: tuple[int, int],
    kinds: Collection[str] | None = None,
    jobs: int = 1,
    thin: bool = False,
) -> Generator[Outcome, None, None]:
    """Run many seeds, in processes of their own if `jobs` is more than 1; in the order of the seeds.

    Closed, or interrupted, before its end it ends the processes at once.
    """
    ask = partial(one, peers=peers, kinds=kinds, thin=thin)
    if jobs <= 1 or len(seeds) <= 1:
        yield from map(ask, seeds)
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_deaf) as pool:
        try:
            yield from _in_order(pool, ask, seeds, AHEAD * jobs)
        except BaseException:
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            raise


def _in_order(
    pool: ProcessPoolExecutor, ask: Callable[[int], Outcome], seeds: Iterable[int], ahead: int
) -> Iterator[Outcome]:
    """Give the pool `ahead` seeds more than are done, and hand out what came of them in order."""
    asked: deque[Future[Outcome]] = deque()
    for seed in seeds:
        asked.append(pool.submit(ask, seed))
        if len(asked) >= ahead:
            yield asked.popleft().result()
    while asked:
        yield asked.popleft().result()


def _deaf() -> None:
    """Leave Ctrl-C, which every process of a terminal gets, to the one that prints the figures."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that so large a share of them doesn't exceed; 0 if there are none."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1))]


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


class Figures:
    """Adds up outcomes."""

    def __init__(self) -> None:
        self.runs = 0
        self.bad: list[Outcome] = []
        self.rules: Counter[str] = Counter()
        """Runs in which a rule was violated."""
        self._sums: Counter[str] = Counter()
        self._takeovers: list[float] = []
        self._catchups: list[float] = []
        self._finished: list[float] = []
        self._rests: list[float] = []

    def add(self, outcome: Outcome) -> None:
        self.runs += 1
        if not outcome.good:
            self.bad.append(outcome)
            self.rules.update({violation.rule for violation in outcome.violations})
        for name in ("peers", "ops", "tasks", "results", "accepted", "flipped", "frames", "bytes_out", "heard_alone"):
            self._sums[name] += getattr(outcome, name)
        self._takeovers += outcome.takeovers
        self._catchups += outcome.catchups
        self._rests.append(outcome.rest_s)
        if outcome.finished_s >= 0:
            self._finished.append(outcome.finished_s)

    def told(self) -> dict[str, float | int | list[int]]:
        """The figures, by name. Times are virtual seconds."""
        sums = self._sums
        return {
            "runs": self.runs,
            "peers": sums["peers"],
            "ops": sums["ops"],
            "failed": len(self.bad),
            "failing_seeds": [outcome.seed for outcome in self.bad],
            "divergences": self.rules["diverged"] + self.rules["structure"],
            "double_results": self.rules["double"],
            "stalled_plans": self.rules["stalled"],
            "takeovers": len(self._takeovers),
            "takeover_p50_s": round(percentile(self._takeovers, 0.5), 2),
            "takeover_p99_s": round(percentile(self._takeovers, 0.99), 2),
            "observers": len(self._catchups),
            "observer_catch_up_p50_s": round(percentile(self._catchups, 0.5), 2),
            "observer_catch_up_p99_s": round(percentile(self._catchups, 0.99), 2),
            "ops_heard_by_observers_alone": sums["heard_alone"],
            "finished_after_healing_p99_s": round(percentile(self._finished, 0.99), 2),
            "rest_p99_s": round(percentile(self._rests, 0.99), 2),
            "duplicated_execution": round(share(sums["results"] - sums["tasks"], sums["tasks"]), 4),
            "flipped_splits": round(share(sums["flipped"], sums["accepted"]), 4),
            "bytes_per_op": round(share(sums["bytes_out"], sums["ops"]), 1),
            "messages_per_op": round(share(sums["frames"], sums["ops"]), 2),
        }
