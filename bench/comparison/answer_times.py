"""Run in one of the two checkouts, by its own interpreter, as subject.py is: fills its hub with what a
measurement needs, and measures how long its answers, messages and searches take.

Each line of input is the name of a measurement; each answer is a line of JSON, name -> seconds. Everything
but this file comes from the checkout in the current folder."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Coroutine
from functools import cached_property, partial
from typing import Any

from bench import charts, log_latency, log_search, sockets
from bench import tracking as tracking_bench
from bench.idle import cpu_s

try:
    from bench.support.mlflow_wire import Wire
    from bench.support.stack import Stack, stack

    fill_telemetry = charts.fill_telemetry
except ModuleNotFoundError:  # a checkout from before the benchmarks' parts had a folder of their own
    from bench.stack import Stack, stack  # type: ignore[import-not-found, no-redef]
    from bench.wire import Wire  # type: ignore[import-not-found, no-redef]

    fill_telemetry = charts._fill  # type: ignore[attr-defined]

NODES, RUNS, CURVE_POINTS = 1, 5_000, 100_000
# Of "search_runs": the experiment that the filler makes first.
EXPERIMENT = "bench-0"
REQUESTS = 15
LINES = 300
SEARCHED_RANKS, SEARCHED_BYTES = 8, 10_000_000
SOCKETS, MESSAGES = 100, 60
CALLS, BATCHES, METRICS_PER_BATCH = 300, 20, 1_000


class AnswerTimes:
    """One hub and how fast it answers."""

    def __init__(self, hub: Stack) -> None:
        self._hub = hub
        # Older hubs compress nothing. Over the loopback, compression is only a cost.
        hub.client.headers["Accept-Encoding"] = "identity"
        self._web = int((hub.data / "run" / "web.pid").read_text())
        self._has_telemetry = self._has_runs = False

    def lines(self) -> dict[str, float]:
        """From a line that the script writes to its WebSocket message: the median."""
        run = self._submit(log_latency.SCRIPT.format(lines=LINES))
        return {
            "line -> message": self._median(
                log_latency.follow(self._hub.url, self._hub.token, run, LINES), LINES
            )
        }

    def sockets(self) -> dict[str, float]:
        """From a line that the script writes to its message at each of many sockets: the median."""
        run = self._submit(sockets.SCRIPT.format(wait=sockets.WAIT_S, lines=MESSAGES))
        url = f"{self._hub.url.replace('http', 'ws', 1)}/ws/runs/{run}/"
        messages = sockets.watch(url, self._hub.token, SOCKETS, MESSAGES)
        return {f"{SOCKETS} sockets": self._median(messages, SOCKETS * MESSAGES // 2)}

    def search(self) -> dict[str, float]:
        """All pages of a search of the logs of 8 ranks: the fastest of three for each query."""
        return {
            f"log search: {name}": log_search._search(self._hub, self._searched_run, query)[0]
            for name, query, _ in log_search.QUERIES
        }

    def charts(self) -> dict[str, float]:
        """For each kind of chart the median of a few requests, and the seconds of a core that the web server
        takes for all of them."""
        if not self._has_telemetry:
            fill_telemetry(self._hub, NODES)
            self._has_telemetry = True
        before = cpu_s(self._web)
        times = {
            f"chart: {name}": _median_time(
                partial(charts._once, self._hub, path, {"from": time.time() - span, **query})
            )
            for name, path, span, query in charts.REQUESTS
        }
        return {**times, "charts: CPU": cpu_s(self._web) - before}

    def tracking(self) -> dict[str, float]:
        """For each call: a metric, a batch of 1,000 in 10 and in 1,000 curves, a search, and a curve."""
        self._fill_runs()
        wire = Wire(self._hub.url, self._hub.token)
        series = f"{self._hub.url}/api/v1/runs/{self._curve}/metrics/series/?keys=loss&pixels=800"
        return {
            "log_metric": 1 / wire.single(CALLS),
            "log_batch, 10 curves": METRICS_PER_BATCH / wire.batch(BATCHES, 10),
            "log_batch, 1,000 curves": METRICS_PER_BATCH / wire.batch(BATCHES, 1_000),
            "search_runs": wire.search(EXPERIMENT, REQUESTS)[0],
            "curve": _median_time(lambda: self._hub.client.get(series).raise_for_status()),
        }

    def runs(self) -> dict[str, float]:
        self._fill_runs()
        page = f"{self._hub.url}/api/v1/runs/?page_size=50"
        return {"API: 50 runs": _median_time(lambda: self._hub.client.get(page).raise_for_status())}

    def _submit(self, script: str, **spec: object) -> str:
        return self._hub.submit(self._hub.snapshot({"main.py": script}), "main.py", **spec)

    def _fill_runs(self) -> None:
        if not self._has_runs:
            tracking_bench._fill(self._hub, "runs", RUNS)
            self._has_runs = True

    @cached_property
    def _curve(self) -> str:
        return tracking_bench._fill(self._hub, "curve", CURVE_POINTS)

    @cached_property
    def _searched_run(self) -> str:
        """Returns a run that has ended, with logs of 8 ranks as bench.log_search writes them."""
        distribution = {
            "type": "pytorch",
            "process_count": SEARCHED_RANKS,
            "node_count": 1,
            "communication_backend": "gloo",
        }
        run = self._submit(log_search.SCRIPT, distribution=distribution)
        logs = [self._hub.log_file(run, f"70_driver_log_{rank}.txt") for rank in range(SEARCHED_RANKS)]
        log_search._await(logs)
        self._hub.api("POST", f"/runs/{run}/cancel/")
        self._hub.wait(run)
        for rank, log in enumerate(logs):
            log_search._fill(log, rank, SEARCHED_BYTES, colored=False)
        return run

    @staticmethod
    def _median(messages: Coroutine[Any, Any, list[float]], at_least: int) -> float:
        seconds = asyncio.run(messages)
        if len(seconds) < at_least:
            raise RuntimeError(f"only {len(seconds)} messages came, at least {at_least} were expected")
        return statistics.median(seconds)


def _median_time(request: Callable[[], object]) -> float:
    times = []
    for _ in range(REQUESTS):
        started = time.perf_counter()
        request()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    with stack() as hub:
        subject = AnswerTimes(hub)
        print("ready", flush=True)
        for line in sys.stdin:
            print(json.dumps(getattr(subject, line.strip())()), flush=True)


if __name__ == "__main__":
    main()
