"""Log latency through a Slurm run beside that of a run on a node of the hub's own, in turn, at one hub."""

from __future__ import annotations

import asyncio
import ssl

from bench.log_latency import SCRIPT, follow
from bench.slurm.slurm_bench import SlurmBench
from bench.support.limits import Limits, median
from bench.support.stack import summary
from tests.slurm.hub import CLUSTER

# The cluster of the hub's own node.
OWN = "local"
LINES = 1000
MAX_RATIO = 1.5


def measure_log_lines(bench: SlurmBench, rounds: int, limits: Limits) -> None:
    snapshot = bench.hub.runs.snapshot(main_py=SCRIPT.format(lines=LINES))
    seconds: dict[str, list[float]] = {OWN: [], CLUSTER: []}
    for _ in range(rounds):
        for cluster in (OWN, CLUSTER):
            seconds[cluster] += _follow(bench, bench.submit(snapshot, cluster=cluster))
    print(summary("own node: line written -> WebSocket message", seconds[OWN]))
    print(summary("Slurm: line written -> WebSocket message", seconds[CLUSTER]))
    limits.at_most(
        "log latency to that of own nodes", median(seconds[CLUSTER]) / median(seconds[OWN]), MAX_RATIO
    )


def _follow(bench: SlurmBench, run: str) -> list[float]:
    hub = bench.hub.hub
    trusted = hub.trusted()
    assert isinstance(trusted, ssl.SSLContext)
    seconds = asyncio.run(follow(hub.url, hub.owner_token(), run, LINES, trusted))
    if len(seconds) < LINES:
        raise RuntimeError(f"only {len(seconds)} of {LINES} lines came")
    bench.hub.completes(run)
    return seconds
