"""What one run on one GPU costs the hub from its submission to its end: the check and the store of the
request, the placement, the claim, the reports of its node, its exit and its journal, at 100 simulated nodes.

CPU of the web server and the worker, less what both take for the same nodes without a run; the database apart
where it is PostgreSQL. The reference is the start of a bare Python process."""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from bench.idle import scheduled_s
from bench.scale import ended, process_start_s, reporting, submit
from bench.support.limits import Limits
from bench.support.postgresql import postgresql
from bench.support.simulated_nodes import RUNS_FOR_S, Tally
from bench.support.stack import Stack, stack, summary

PROCESSES = ("web", "worker")
SETTLE_S, WARM_UP_RUNS = 8.0, 20
# A run may cost as many starts of a bare Python process.
MAX_PROCESS_STARTS = 7.0


def cpu_of(hub: Stack) -> dict[str, float]:
    """Returns the CPU seconds that the web server and the worker have taken so far."""
    return {name: scheduled_s(_pid(hub, name)) for name in PROCESSES}


def since(hub: Stack, before: dict[str, float]) -> dict[str, float]:
    return {name: seconds - before[name] for name, seconds in cpu_of(hub).items()}


@contextmanager
def flame_graphs(hub: Stack, program: str, folder: Path) -> Iterator[None]:
    """Has py-spy write the stacks of both processes to `folder`, one line for each with its samples."""
    if not program:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    recorders = []
    for name in PROCESSES:
        output = ["--format", "raw", "--output", str(folder / f"{name}.txt")]
        command = [
            program,
            "record",
            "--rate",
            "250",
            "--gil",
            "--nonblocking",
            "--threads",
            "--pid",
            str(_pid(hub, name)),
            *output,
        ]
        recorders.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    try:
        yield
    finally:
        for recorder in recorders:
            recorder.send_signal(signal.SIGINT)
            recorder.wait(60)


async def measure(hub: Stack, options: argparse.Namespace) -> dict[str, float]:
    """Returns the CPU seconds of one run by process."""
    tally, headers = Tally(), {"Authorization": f"Bearer {hub.token}"}
    # Shorter than the 5 s after which the server closes an idle connection, perhaps just as it is used again.
    limits = httpx.Limits(keepalive_expiry=4.0)
    owner = httpx.AsyncClient(base_url=hub.url, headers=headers, timeout=60, limits=limits)
    async with owner as client, reporting(hub, options.nodes, tally):
        await asyncio.sleep(SETTLE_S)
        snapshot = hub.snapshot({"main.py": "print('hello')\n"})
        await _submit_evenly(client, snapshot, WARM_UP_RUNS, options.per_second)
        await asyncio.sleep(SETTLE_S)
        before = cpu_of(hub)
        await asyncio.sleep(options.idle)
        idle = {name: seconds / options.idle for name, seconds in since(hub, before).items()}
        with flame_graphs(hub, options.py_spy, options.into):
            before, begun = cpu_of(hub), time.monotonic()
            await _submit_evenly(client, snapshot, options.runs, options.per_second)
            # The last run, and the writes of the rounds that follow its end.
            await asyncio.sleep(RUNS_FOR_S + 4)
            seconds, used = time.monotonic() - begun, since(hub, before)
        runs = await ended(client, 60)
    states = [run["state"] for run in runs]
    if states.count("Completed") != options.runs + WARM_UP_RUNS or tally.refused:
        raise RuntimeError(f"not all runs were completed: {set(states)}, refused {tally.refused}")
    print(summary("report answered", tally.report_s))
    print(summary("claim answered", tally.claim_s))
    print(f"idle, {options.nodes} nodes: {', '.join(f'{n} {s:.1%} of a core' for n, s in idle.items())}")
    return {name: (used[name] - idle[name] * seconds) / options.runs for name in PROCESSES}


async def _submit_evenly(client: httpx.AsyncClient, snapshot: str, count: int, per_second: float) -> None:
    begun = time.monotonic()
    for number in range(count):
        await asyncio.sleep(max(0.0, begun + number / per_second - time.monotonic()))
        await submit(client, snapshot, [(1, 1)])


def _pid(hub: Stack, name: str) -> int:
    return int((hub.data / "run" / f"{name}.pid").read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--per-second", type=float, default=4.0, help="submissions")
    parser.add_argument("--idle", type=float, default=20.0, help="seconds without a run, before")
    parser.add_argument("--sqlite", action="store_true", help="the embedded database instead of PostgreSQL")
    parser.add_argument("--py-spy", default="", help="the program py-spy, to record where the time goes")
    parser.add_argument("--into", type=Path, default=Path("flame"), help="the folder of its records")
    options = parser.parse_args()
    with ExitStack() as contexts:
        settings = {} if options.sqlite else {"DATABASE_URL": contexts.enter_context(postgresql()).url}
        hub = contexts.enter_context(stack(**settings))
        cost = asyncio.run(measure(hub, options))
    start_s = process_start_s()
    each = ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in cost.items())
    print(f"CPU of a run: {sum(cost.values()) * 1e3:.1f} ms ({each}); a bare process {start_s * 1e3:.1f} ms")
    limits = Limits()
    limits.at_most("a run's CPU to that of a bare process", sum(cost.values()) / start_s, MAX_PROCESS_STARTS)
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
