"""How the cost of a plan grows with the number of peers and with the size of the plan, as a picture.

    python -m tests.benchmarks.simulation_cost [--out docs/simulation-cost.svg] [--quick]

Simulated swarms without faults, so bytes and messages are exact and the same on every machine; only the CPU time (of
the whole swarm in one process, per op and peer) is this machine's.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path

import msgspec

from swarmtui.plan.ops import Policy
from swarmtui.sim.judgement import Outcome
from swarmtui.sim.run import run
from swarmtui.sim.scenario import Member, Scenario

POLICY = Policy(
    need=2, of=3, rivals=2, rounds=0, fan_out=(3, 4), max_depth=3, patience_s=60, lease_s=60, synthesis="root"
)
PEERS = (5, 8, 12, 20, 35, 50, 100, 200, 400)
DEPTHS = ((2, (2, 3)), (3, (3, 4)), (4, (4, 5)), (5, (4, 5)), (6, (5, 6)), (7, (5, 6)))
WIDTH, HEIGHT, MARGIN = 420, 300, 56
ROOM = 3
"""The key stands above the highest point: the axis goes at least so many times as high."""
COLOURS = ("#2f6f9f", "#b5533c", "#3f7f4f")
Series = tuple[str, list[tuple[float, float]]]


class Sample(msgspec.Struct):
    """One run."""

    peers: int
    ops: int
    tasks: int
    frames_per_op: float
    kilobytes_per_op: float
    """Published by the whole swarm, presence and repair included."""
    microseconds: float
    """CPU per op and peer."""


def measure(peers: int, policy: Policy, finish_s: float = 20_000.0) -> Sample:
    """Run one plan to its end in a swarm of so many."""
    crew = ["operator", "decomposer", "decomposer", "scorer", "scorer", "scorer", "executor", "executor"]
    roles = ["operator", "decomposer", "scorer", "scorer", "executor"] if peers < len(crew) else crew
    roles = roles + ["idle"] * (peers - len(roles))
    members = tuple(Member(role=role, joins_s=0.01 * number) for number, role in enumerate(roles))
    scenario = Scenario(
        seed=7, members=members, policy=policy, heal_s=10.0, finish_s=finish_s, tokens_per_second=60.0,
        degree=0 if peers <= 50 else 8,
    )  # fmt: skip
    began = time.process_time()
    outcome: Outcome = run(scenario)
    seconds = time.process_time() - began
    if not outcome.good:
        raise SystemExit(f"{peers} peers: {outcome.violations}")
    ops = outcome.ops
    return Sample(
        peers, ops, outcome.tasks, outcome.frames / ops, outcome.bytes_out / ops / 1000, 1e6 * seconds / ops / peers
    )


def panel(x0: int, title: str, label: str, series: Sequence[Series]) -> list[str]:
    """A chart with logarithmic axes."""
    points = [point for _, line in series for point in line]
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    low_y = 10 ** math.floor(math.log10(min(y for _, y in points)))
    high_y = 10 ** math.ceil(math.log10(ROOM * max(y for _, y in points)))

    def at(x: float, y: float) -> tuple[float, float]:
        right = math.log(x / low_x) / math.log(high_x / low_x) * (WIDTH - 2 * MARGIN)
        up = math.log(y / low_y) / math.log(high_y / low_y) * (HEIGHT - 2 * MARGIN)
        return x0 + MARGIN + right, HEIGHT - MARGIN - up

    left, bottom = at(low_x, low_y)
    right, top = at(high_x, high_y)
    made = [
        f'<text x="{x0 + WIDTH / 2}" y="22" class="title">{escape(title)}</text>',
        f'<text x="{x0 + WIDTH / 2}" y="{HEIGHT - 12}">{escape(label)}</text>',
        f'<path d="M{left} {top}V{bottom}H{right}" class="axis"/>',
    ]
    for x in sorted({x for x, _ in points}):
        made.append(f'<text x="{at(x, low_y)[0]:.0f}" y="{bottom + 16:.0f}" class="tick">{x:g}</text>')
    for power in range(round(math.log10(low_y)), round(math.log10(high_y)) + 1):
        y = at(low_x, 10.0**power)[1]
        made.append(f'<path d="M{left} {y:.1f}H{right}" class="grid"/>')
        made.append(f'<text x="{left - 6:.0f}" y="{y + 4:.0f}" class="tick end">{10.0**power:g}</text>')
    for number, (name, line) in enumerate(series):
        colour = COLOURS[number]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (at(*point) for point in line))
        made.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        made += [f'<circle cx="{at(*p)[0]:.1f}" cy="{at(*p)[1]:.1f}" r="3" fill="{colour}"/>' for p in line]
        made.append(
            f'<text x="{left + 8:.0f}" y="{top + 4 + 15 * number:.0f}" style="fill:{colour}" class="key">'
            f"{escape(name)}</text>"
        )
    return made


def picture(by_peers: Sequence[Sample], by_tasks: Sequence[Sample]) -> str:
    """Both charts as an SVG."""

    def lines(samples: Sequence[Sample], key: str) -> list[Series]:
        pairs = (
            ("messages published per op", "frames_per_op"),
            ("kB published per op", "kilobytes_per_op"),
            ("µs of CPU per op and peer", "microseconds"),
        )
        return [(name, [(getattr(s, key), getattr(s, field)) for s in samples]) for name, field in pairs]

    tasks = sorted(sample.tasks for sample in by_peers)
    body = [
        *panel(0, f"Cost against peers ({tasks[0]} to {tasks[-1]} tasks)", "peers", lines(by_peers, "peers")),
        *panel(WIDTH, f"Cost against plan size ({by_tasks[0].peers} peers)", "tasks", lines(by_tasks, "tasks")),
    ]
    style = (
        "text{font:12px sans-serif;text-anchor:middle;fill:#333}.title{font-size:14px}.tick{font-size:10px}"
        ".end{text-anchor:end}.key{text-anchor:start;font-size:11px}.axis{fill:none;stroke:#333}"
        ".grid{stroke:#ddd;fill:none}"
    )
    size = f'width="{2 * WIDTH}" height="{HEIGHT}" viewBox="0 0 {2 * WIDTH} {HEIGHT}"'
    joined = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n'
        f"<!-- made by: python -m tests.benchmarks.simulation_cost -->\n<style>{style}</style>\n"
        f'<rect width="100%" height="100%" fill="#fff"/>\n{joined}\n</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="Also draw the picture, here.")
    parser.add_argument("--quick", action="store_true", help="Only the small ones.")
    asked = parser.parse_args()
    by_peers, by_tasks = [], []
    for peers in PEERS[:4] if asked.quick else PEERS:
        by_peers.append(measure(peers, POLICY))
        print(by_peers[-1], flush=True)
    for depth, fan_out in DEPTHS[:4] if asked.quick else DEPTHS:
        by_tasks.append(measure(8, msgspec.structs.replace(POLICY, max_depth=depth, fan_out=fan_out)))
        print(by_tasks[-1], flush=True)
    by_tasks.sort(key=lambda sample: sample.tasks)
    if asked.out:
        asked.out.write_text(picture(by_peers, by_tasks), "utf-8")
        print(f"wrote {asked.out}")


if __name__ == "__main__":
    main()
