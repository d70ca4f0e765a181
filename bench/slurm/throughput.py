"""How long many short jobs take in all: through the hub on its own node, and by hand in Slurm, in turn.

Both have the same number of places: simulated GPUs on the hub's node, cores in Slurm."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from bench.slurm.log_lines import OWN
from bench.slurm.slurm_bench import NODES, SlurmBench, seconds_until, slurm_bench
from bench.support.limits import Limits
from simulator import Scenario, environment
from simulator.models import h100

T = TypeVar("T")
SUBMITTERS = 4
MAX_RATIO = 1.5
PATIENCE_S = 600.0
LOOK_S = 0.5
SCRIPT = "import time\ntime.sleep(2)\n"


def measure_throughput(jobs: int, places: int, limits: Limits) -> None:
    """Each of `jobs` runs needs one of `places`."""
    with tempfile.TemporaryDirectory(prefix="th-bench-") as folder:
        gpus = Scenario([h100(f"bench gpu {index}") for index in range(places)])
        hub_settings = environment(gpus.write(Path(folder) / "scenario"))
        with slurm_bench(places // NODES, hub_settings) as bench:
            by_hand, through_hub = _measure(bench, jobs)
    print(
        f"{jobs} jobs of 2 s in {places} places: hub {through_hub:.1f} s, Slurm {by_hand:.1f} s", flush=True
    )
    limits.at_most("the time of all through the hub to Slurm", through_hub / by_hand, MAX_RATIO)


def _measure(bench: SlurmBench, jobs: int) -> tuple[float, float]:
    script = bench.logs / "two_seconds.py"
    script.write_text(SCRIPT)
    script.chmod(0o644)
    snapshot = bench.hub.runs.snapshot(main_py=SCRIPT)
    # The first ones fill caches.
    _through_hub(bench, snapshot, 1)
    _by_hand(bench, script, 1)
    return _by_hand(bench, script, jobs), _through_hub(bench, snapshot, jobs)


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
