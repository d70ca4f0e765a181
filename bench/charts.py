"""How long the API takes for charts over hours, a day and a month, with a past of 30 days stored; SQLite and
PostgreSQL."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Any

from bench.idle import cpu_s
from bench.support.postgresql import postgresql
from bench.support.stack import ROOT, Stack, stack, summary

HOUR, DAY, MONTH = 3600, 86400, 30 * 86400
NODE, GPU, HEAT = "/nodes/bench-0/series/", "/gpus/bench-0-GPU-0/series/", "/clusters/bench/heat/"
REQUESTS: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("a node's 8 GPUs, 1 h", NODE, HOUR, {}),
    ("a node's 8 GPUs, 24 h", NODE, DAY, {}),
    ("a node's 8 GPUs, 30 d", NODE, MONTH, {}),
    ("a node's 8 GPUs, 24 h, all 28 metrics", NODE, DAY, {"metrics": "all", "host": "all"}),
    ("a node's 8 GPUs, 30 d, 2,000 points", NODE, MONTH, {"points": 2000}),
    ("one GPU, 30 d", GPU, MONTH, {}),
    ("heat of all GPUs, 1 h", HEAT, HOUR, {"points": 60}),
    ("heat of all GPUs, 24 h", HEAT, DAY, {"points": 144}),
)
# Times an answer without numbers.
WITHIN_RATIO = 25.0
HELD_TO_IT = ("a node's 8 GPUs, 24 h", "a node's 8 GPUs, 30 d")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20, help="of 8 GPUs each, with the same past")
    parser.add_argument("--requests", type=int, default=20, help="of each kind")
    parser.add_argument(
        "--database", choices=["sqlite", "postgresql"], nargs="*", default=["sqlite", "postgresql"]
    )
    options = parser.parse_args()
    slow = [name for kind in options.database for name in _measured(kind, options)]
    if slow:
        sys.exit(f"More than {WITHIN_RATIO:.0f} times an answer without numbers: {', '.join(slow)}")


def _measured(kind: str, options: argparse.Namespace) -> list[str]:
    with ExitStack() as held:
        settings = {"DATABASE_URL": held.enter_context(postgresql()).url} if kind == "postgresql" else {}
        hub = held.enter_context(stack(**settings))
        filled = fill_telemetry(hub, options.nodes)
        print(f"{kind}: {options.nodes} nodes × 8 GPUs, 30 days, {filled['chunks']:,} chunks")
        for step, size in filled["bytes_per_gpu_day"].items():
            print(f"  chunks of {step:>3} s: {size / 1e3:7.0f} kB per GPU-day")
        slice_us = filled["slice_s"] * 1e6
        print(
            f"  a slice (8 GPUs and the machine, 10 s): {filled['slice_bytes']:.0f} B, {slice_us:.0f} "
            "µs to store"
        )
        share = filled["fold_s"] * 1000 / 1200
        print(
            f"  folding what a node told in 20 min: {filled['fold_s'] * 1e3:.0f} ms of CPU; 1,000 nodes: "
            f"{share:.1%} of a core"
        )
        for name, number in filled["rows"].items():
            print(f"  beside it, the same as rows, {name}: {number:,.0f}")
        return [
            name
            for name, ratio in _times(hub, options.requests).items()
            if name in HELD_TO_IT and ratio > WITHIN_RATIO
        ]


def fill_telemetry(hub: Stack, nodes: int) -> dict[str, Any]:
    """Stores the past of that many nodes with 8 GPUs each, and returns what the filler measured."""
    env = {**os.environ, **hub.settings, "DATA_DIR": str(hub.data)}
    command = [sys.executable, "-m", "bench.support.telemetry_filler", "--nodes", str(nodes)]
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout.partition("FILLED ")[2])
    return told


def _times(hub: Stack, count: int) -> dict[str, float]:
    """Returns the median time of each answer over HTTP, divided by that of an answer without numbers."""
    ratios, web = {}, int((hub.data / "run" / "web.pid").read_text())
    bare = [_once(hub, "/metrics/", {})[0] for _ in range(count)]
    print(summary("  an answer without numbers", bare))
    for name, path, span, query in REQUESTS:
        seconds, size, busy_s = [], 0, cpu_s(web)
        for _ in range(count):
            took, size = _once(hub, path, {"from": time.time() - span, **query})
            seconds.append(took)
        each_ms = (cpu_s(web) - busy_s) / count * 1e3
        ratios[name] = sorted(seconds)[count // 2] / sorted(bare)[count // 2]
        print(
            f"{summary(f'  {name}', seconds)}   {size / 1e3:6.0f} kB   {each_ms:4.0f} ms of the web "
            "server's CPU"
        )
    return ratios


def _once(hub: Stack, path: str, query: dict[str, Any]) -> tuple[float, int]:
    begun = time.perf_counter()
    answer = hub.client.get(f"{hub.url}/api/v1{path}", params=query).raise_for_status()
    return time.perf_counter() - begun, len(answer.content)


if __name__ == "__main__":
    main()
