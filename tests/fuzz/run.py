"""A long run of the fuzzer, by hand.

    python -m tests.fuzz.run --inputs 1000000 [--target NAME …] [--seed N]
    python -m tests.fuzz.run --target op --atheris 300       coverage-guided, for so many seconds (pip install atheris)

Prints inputs a second, exceptions that weren't caught (0 is right), and the memory of this process,
measured half-way, when the caches are full, and at the end. A batch that raised is printed with how to run it again.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from .dice import Dice, SeededDice

if "--atheris" in sys.argv:
    import atheris

    with atheris.instrument_imports(include=["swarmtui", "tests.fuzz.by_the_page", "base58"]):
        from .targets import TARGETS, Target
else:
    from .targets import TARGETS, Target

SHOWN = 5
"""Tracebacks printed per target."""


def resident_mib() -> float:
    """Memory of this process, in MiB."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def run(name: str, target: Target, inputs: int, seed: int, only: int | None) -> int:
    """Feed one target; the number of batches that raised."""
    batches = max(1, inputs // target.batch)
    began, raised, warm = time.perf_counter(), 0, 0.0
    for batch in range(batches) if only is None else [only]:
        if batch == batches // 2:
            warm = resident_mib()
        try:
            target.feed(SeededDice((name, seed, batch)), target.batch)
        except Exception:
            raised += 1
            if raised <= SHOWN:
                print(f"--- {name}: repeat with --target '{name}' --seed {seed} --batch {batch}", flush=True)
                traceback.print_exc()
    seconds, fed = time.perf_counter() - began, batches * target.batch
    print(
        f"{name:16} {fed:9,} inputs {fed / seconds:8,.0f}/s  {raised} uncaught  "
        f"{warm:6.1f} MiB, then {resident_mib():6.1f} MiB",
        flush=True,
    )
    return raised


def guided(target: Target, seconds: int) -> None:
    """Let atheris choose, guided by what of swarmtui it reaches. Ends the process."""

    def one(data: bytes) -> None:
        target.feed(Dice(data), target.each)

    options = [f"-max_total_time={seconds}", f"-max_len={target.octets}", "-rss_limit_mb=2048", "-timeout=60"]
    with tempfile.TemporaryDirectory() as corpus:  # begins with choices as long as they may be, not with none
        for number in range(40):
            Path(corpus, str(number)).write_bytes(SeededDice(number).octets(target.octets))
        atheris.Setup([sys.argv[0], "-len_control=0", *options, corpus], one)
        atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="in all, shared out among the targets")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only these, with all inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, help="only this batch")
    parser.add_argument("--atheris", type=int, metavar="SECONDS", help="coverage-guided")
    options = parser.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())
    names = options.target or list(TARGETS)
    if options.atheris:
        guided(TARGETS[names[0]], options.atheris)
    whole = sum(TARGETS[name].share for name in names)
    raised = 0
    for name in names:
        target = TARGETS[name]
        raised += run(name, target, int(options.inputs * target.share / whole), options.seed, options.batch)
    print(f"{raised} batches raised")
    sys.exit(raised > 0)


if __name__ == "__main__":
    main()
