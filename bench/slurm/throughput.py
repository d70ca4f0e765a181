"""How long many short jobs take in all: through the hub on its own node, and by hand in Slurm, in turn.

Both have the same number of places: simulated GPUs on the hub's node, cores in Slurm."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from bench.slurm.log_lines import OWN
from bench.slurm.slurm_bench import JOBS, SlurmBench, seconds_until
from bench.support.limits import Limits, median
from simulator import Scenario, environment
from simulator.models import h100

T = TypeVar("T")
SUBMITTERS = 4
MAX_RATIO = 1.5
PATIENCE_S = 600.0
LOOK_S = 0.5
SCRIPT = "import time\ntime.sleep(2)\n"


def places(folder: Path) -> dict[str, str]:
    """Returns the environment variables with which the hub's own node has as many GPUs as Slurm has cores."""
    scenario = Scenario([h100(f"bench gpu {index}") for index in range(JOBS)])
    return environment(scenario.write(folder / "scenario"))


def measure_throughput(bench: SlurmBench, jobs: int, rounds: int, limits: Limits) -> None:
    script = bench.logs / "two_seconds.py"
    script.write_text(SCRIPT)
    script.chmod(0o644)
    snapshot = bench.hub.runs.snapshot(main_py=SCRIPT)
    # The first run of an account fills caches.
    _through_hub(bench, snapshot, 1)
    by_hand, through_hub = list[float](), list[float]()
    for _ in range(rounds):
        by_hand.append(_by_hand(bench, script, jobs))
        through_hub.append(_through_hub(bench, snapshot, jobs))
        print(f"{jobs} jobs of 2 s: hub {through_hub[-1]:.1f} s, Slurm {by_hand[-1]:.1f} s", flush=True)
    limits.at_most(
        "the time of all through the hub to Slurm", median(through_hub) / median(by_hand), MAX_RATIO
    )


def _by_hand(bench: SlurmBench, script: Path, jobs: int) -> float:
    started_at = time.monotonic()
    _at_once(lambda: bench.submit_by_hand(script), jobs)
    return seconds_until(lambda: _is_over(not bench.hub.jobs()), started_at, PATIENCE_S)


def _through_hub(bench: SlurmBench, snapshot: str, jobs: int) -> float:
    runs = bench.hub.runs
    started_at = time.monotonic()
    submitted = _at_once(lambda: bench.submit(snapshot, cluster=OWN, gpus_per_node=1), jobs)
    active = "/runs/?state=active&page_size=1"
    seconds = seconds_until(lambda: _is_over(not runs.get(active)["results"]), started_at, PATIENCE_S)
    for run in submitted:
        bench.hub.completes(run)
    return seconds


def _is_over(is_over: bool) -> bool:
    # Each look costs both sides something: few are enough for what takes a minute.
    if not is_over:
        time.sleep(LOOK_S)
    return is_over


def _at_once(submit: Callable[[], T], jobs: int) -> list[T]:
    with ThreadPoolExecutor(SUBMITTERS) as pool:
        return [submitted.result() for submitted in [pool.submit(submit) for _ in range(jobs)]]
