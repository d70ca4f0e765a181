"""What `Run.log` of the SDK v1 costs a training script, with a hub and while it is away; and that nothing is
lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from threading import Event
from typing import Any

from bench.support.limits import Limits, median
from bench.support.stack import ROOT
from tests.azureml.stub_hub import RUN, StubHub, serving

ROUNDS = 5
# 30 µs where a line of JSON in a queue takes 10.
MAX_TO_QUEUE = 3
# Of a call while the hub is away: the same work, and a longer list.
MAX_AWAY_TO_PRESENT = 2
# Prints the seconds of CPU and of the clock that each round of calls took, by turns with the reference.
_SCRIPT = """
import json, queue, sys, time
from azureml.core import Run
calls, rounds, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
run, lines = Run.get_context(), queue.Queue()
run.log("warm", 1.0)

def log(step):
    run.log("loss", step * 0.5, step=step)

def put(step):
    lines.put(json.dumps({"key": "loss", "value": step * 0.5, "step": step, "timestamp": time.time()}))

times = {"log": [], "put": []}
step = 0
for _ in range(rounds):
    for name, call in (("put", put), ("log", log)):
        begin, clock = time.thread_time(), time.perf_counter()
        for number in range(step, step + calls):
            call(number)
        times[name].append((time.thread_time() - begin, time.perf_counter() - clock))
    step += calls
    time.sleep(pause)
print(json.dumps(times))
"""


def measure_logging(limits: Limits, calls: int, away_s: float) -> None:
    """Measures rounds of `calls` values each, and judges them. `away_s`: how long the hub is away."""
    with serving() as hub:
        times = measure(hub, calls, 1.0)
        present = _report("Run.log with a hub", times["log"], calls)
        reference = _report("json.dumps and Queue.put", times["put"], calls)
        lost = _lost(hub, calls)
    with serving() as hub:
        away, count = measure_away(hub, calls, away_s)
        lost += _lost(hub, calls)
    limits.at_most("Run.log to a line of JSON in a queue", present / reference, MAX_TO_QUEUE)
    limits.at_most("Run.log while the hub is away to Run.log", away / present, MAX_AWAY_TO_PRESENT)
    limits.at_least("requests without an answer", count, 1)
    limits.at_most("values that the hub lacks", lost, 0)


def measure_away(hub: StubHub, calls: int, away_s: float) -> tuple[float, int]:
    """Returns the seconds of CPU of a call while the hub hangs, then refuses, and after `away_s` is back; and
    the number of requests that it left without an answer."""
    answer, end = hub.answer, time.monotonic() + away_s
    unanswered: list[str] = []

    def hang(method: str, path: str, query: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        if time.monotonic() < end:
            unanswered.append(path)
            # Half of the time requests hang, then they are refused at once.
            Event().wait(max(0.0, end - away_s / 2 - time.monotonic()))
            return 503, {"message": "The hub is away."}
        return answer(method, path, query, body)

    hub.answer = hang  # type: ignore[method-assign]
    # The script goes on for as long as the hub is away.
    times = measure(hub, calls, away_s / ROUNDS)
    return _report(f"Run.log, away for {away_s:g} s", times["log"], calls), len(unanswered)


def measure(hub: StubHub, calls: int, pause_s: float) -> dict[str, list[tuple[float, float]]]:
    """Returns the seconds of CPU, and of the clock, of each round of calls in the process of a job."""
    path = f"{ROOT / 'trainhub_azureml' / 'names'}:{ROOT}"
    variables = {"TRAINHUB_RUN_ID": RUN, "TRAINHUB_URL": hub.url, "TRAINHUB_TOKEN": "t"}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(calls), str(ROUNDS), str(pause_s)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    if done.stderr:
        print(done.stderr)
    times: dict[str, list[tuple[float, float]]] = json.loads(done.stdout)
    return times


def _report(name: str, rounds: list[tuple[float, float]], calls: int) -> float:
    """Prints and returns the CPU of one call, the median of all rounds."""
    cpu, clock = (1e6 * median([values[index] for values in rounds]) / calls for index in (0, 1))
    print(f"{name:<34} {cpu:6.1f} µs of CPU a call, {clock:6.1f} µs by the clock (median of {len(rounds)})")
    return cpu


def _lost(hub: StubHub, calls: int) -> int:
    steps = {step for key, _value, step in hub.metrics if key == "loss"}
    return ROUNDS * calls - len(steps)
