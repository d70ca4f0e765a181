"""What it costs to follow many runs: calls of Slurm's commands, and CPU of the worker, which follows them."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing

import httpx

from bench.slurm.slurm_bench import JOBS, MEMORY_MB, SlurmBench, have_lines, seconds_until
from bench.support.limits import Limits
from bench.support.stack import process_cpu_s
from tests.signing_in import page_client
from tests.slurm.hub import CLUSTER

QUEUED = 200
# Once a minute the worker does what it does once a minute.
WINDOW_S = 120.0
MAX_CALLS = 1.0
CALLS_INTERVAL_S = 5.0
MAX_CPU_PERCENT = 3.0
# As the page of a cluster does.
PAGE_INTERVAL_S = 10.0
PAGE_PATHS = (f"/clusters/{CLUSTER}/", f"/clusters/{CLUSTER}/queue/")
# Starts of 50 jobs at once on two cores.
FILL_S = 600.0
MB = 1024**2
SCRIPT = "import time\nprint('here', flush=True)\ntime.sleep(3600)\n"


class Watching:
    def __init__(self, bench: SlurmBench) -> None:
        self._bench = bench

    def measure(self, limits: Limits) -> None:
        idle, _ = self._window("no runs")
        self._fill()
        busy, calls = self._window(f"{QUEUED} runs queued, {JOBS} running")
        limits.at_most(
            "CPU of the worker with its calls beyond idle, in percent", busy - idle, MAX_CPU_PERCENT
        )
        self._judge_calls(limits, "", calls)
        with closing(page_client(self._bench.hub.hub)) as browser:
            _, calls = self._window("the same while the cluster's page is open", browser)
        self._judge_calls(limits, ", page open", calls)

    def _judge_calls(self, limits: Limits, name: str, calls: int) -> None:
        each = calls * CALLS_INTERVAL_S / WINDOW_S
        limits.at_most(f"calls of Slurm in {CALLS_INTERVAL_S:g} s{name}", each, MAX_CALLS)

    def _fill(self) -> None:
        runs = self._bench.hub.runs
        snapshot = runs.snapshot(main_py=SCRIPT)
        started_at = time.monotonic()
        submitted = [self._bench.submit(snapshot, memory=MEMORY_MB * MB) for _ in range(QUEUED + JOBS)]
        print(f"{len(submitted)} runs submitted in {time.monotonic() - started_at:.0f} s")

        def is_full() -> bool:
            time.sleep(1)
            started = sum(have_lines(self._bench.log_files(run)) for run in submitted)
            return started == JOBS and len(self._bench.hub.jobs()) == QUEUED + JOBS

        seconds_until(is_full, started_at, FILL_S)

    def _window(self, name: str, browser: httpx.Client | None = None) -> tuple[float, int]:
        """Returns the CPU of the worker in percent of a core, and the number of calls of Slurm.

        `browser`: has the cluster's page open."""
        worker = self._bench.hub.hub.pid("worker")
        cpu_s, earlier, ends_at = process_cpu_s(worker), len(self._bench.calls()), time.monotonic() + WINDOW_S
        while (remaining_s := ends_at - time.monotonic()) > 0:
            if browser is not None:
                for path in PAGE_PATHS:
                    browser.get(path).raise_for_status()
            time.sleep(min(PAGE_INTERVAL_S, remaining_s))
        percent = 100 * (process_cpu_s(worker) - cpu_s) / WINDOW_S
        calls = Counter(self._bench.calls()[earlier:])
        print(f"{name}: worker {percent:.2f} % of a core; calls in {WINDOW_S:g} s: {dict(calls)}")
        return percent, calls.total()
