"""A hub with 200 simulated nodes of 8 GPUs: heartbeats, and 500 queued runs of mixed sizes, from one to four
nodes."""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from bench.idle import cpu_s, pss_mib
from bench.support.limits import Limits
from bench.support.postgresql import postgresql
from bench.support.simulated_nodes import RUNS_FOR_S, SimulatedNode, Tally
from bench.support.stack import Stack, stack, summary

CLUSTER = "simulated"
# Nodes and GPUs a node, in turn: 40 % on one GPU, 20 % gangs.
SIZES = [(1, 1)] * 8 + [(1, 2)] * 3 + [(1, 4)] * 3 + [(1, 8)] * 2 + [(2, 4), (2, 8), (2, 8), (4, 8)]
ENROL = """
import json, sys
from clusters.enrolment.node_tokens import enrol_node
print("TOKENS" + json.dumps({f"sim-{n}": enrol_node("%s", f"sim-{n}")[1] for n in range(%d)}))
"""
IDLE_FOR_S, DRAIN_WITHIN_S, SUBMITTERS = 20.0, 200.0, 4
# A run may cost the hub as much CPU as so many starts of a bare Python process.
STARTS, MAX_PROCESS_STARTS = 20, 25.0
FINAL = ("Completed", "Failed", "Canceled")


def enrolled(hub: Stack, nodes: int) -> dict[str, str]:
    """Name -> token, in one process: two hundred would take longer than the measurement."""
    tokens: dict[str, str] = json.loads(
        hub.shell(ENROL % (CLUSTER, nodes)).partition("TOKENS")[2].splitlines()[0]
    )
    return tokens


class Watch:
    """Looks at the hub as a page would: which simulated nodes it shows as anything but ready."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.wrong: set[str] = set()
        self.looks = 0

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(2)
            nodes = (await self._client.get("/api/v1/nodes/")).raise_for_status().json()
            rows = nodes["results"] if isinstance(nodes, dict) else nodes
            self.looks += 1
            self.wrong |= {
                row["name"] for row in rows if row["name"].startswith("sim-") and row["status"] != "ready"
            }


class Meter:
    """CPU seconds and memory of the hub's processes since it was made."""

    def __init__(self, hub: Stack) -> None:
        self._hub, self._begun = hub, time.monotonic()
        self._pids = {
            name: int((hub.data / "run" / f"{name}.pid").read_text()) for name in ("web", "worker", "valkey")
        }
        self._before = {name: cpu_s(pid) for name, pid in self._pids.items()}

    def cpu_s(self) -> float:
        """Returns the CPU seconds of all these processes since it was made."""
        return sum(cpu_s(pid) - self._before[name] for name, pid in self._pids.items())

    def show(self, what: str) -> None:
        seconds = time.monotonic() - self._begun
        print(f"{what}, {seconds:.0f} s:")
        for name, pid in self._pids.items():
            busy = (cpu_s(pid) - self._before[name]) / seconds * 100
            print(f"  {name:<7} {pss_mib(pid):7.1f} MiB  {busy:5.1f} % CPU")


@asynccontextmanager
async def reporting(
    hub: Stack, count: int, tally: Tally, runs_for_s: float = RUNS_FOR_S
) -> AsyncIterator[list[SimulatedNode]]:
    url = urlsplit(hub.url)
    place = url.hostname or "", url.port or 0
    nodes = [
        SimulatedNode(name, token, place, tally, runs_for_s=runs_for_s)
        for name, token in enrolled(hub, count).items()
    ]
    tasks = [asyncio.create_task(node.live(5.0 * index / count)) for index, node in enumerate(nodes)]
    try:
        yield nodes
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


def spec(snapshot: str, nodes: int, gpus: int) -> dict[str, Any]:
    return {
        "source": {"type": "snapshot", "id": snapshot},
        "script": "main.py",
        "experiment": "scale",
        "distribution": {"type": "pytorch", "process_count": nodes * gpus, "node_count": nodes},
        "resources": {"cluster": CLUSTER, "gpus_per_node": gpus},
    }


async def submit(client: httpx.AsyncClient, snapshot: str, sizes: list[tuple[int, int]]) -> list[str]:
    """Run ids, in the order of `sizes`; as many at a time as SUBMITTERS."""
    gate = asyncio.Semaphore(SUBMITTERS)

    async def one(nodes: int, gpus: int) -> str:
        async with gate:
            answer = await client.post("/api/v1/runs/", json=spec(snapshot, nodes, gpus))
            if answer.is_error:
                raise RuntimeError(f"a run was not taken: {answer.status_code} {answer.text[:500]}")
            return str(answer.json()["id"])

    return await asyncio.gather(*(one(*size) for size in sizes))


async def ended(client: httpx.AsyncClient, within_s: float) -> list[dict[str, Any]]:
    """Every run of the experiment, once all have ended; what there is, when the time is over."""
    deadline = time.monotonic() + within_s
    while (await client.get("/api/v1/runs/?state=active&page_size=1")).raise_for_status().json()["results"]:
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(0.5)
    runs, url = [], "/api/v1/runs/?page_size=500"
    while url:
        page = (await client.get(url)).raise_for_status().json()
        runs += page["results"]
        url = page["next"]
    return runs


async def placing_s(client: httpx.AsyncClient, runs: list[str]) -> list[float]:
    """Submitted -> nodes leased and attempt written, by the hub's own clock."""
    out = []
    for run in runs:
        told = (await client.get(f"/api/v1/runs/{run}/")).raise_for_status().json()
        if told["attempts"]:
            placed, submitted = (
                datetime.fromisoformat(row["created_at"]) for row in (told["attempts"][0], told)
            )
            out.append((placed - submitted).total_seconds())
    return out


async def measure(hub: Stack, nodes: int, runs: int) -> bool:
    tally = Tally()
    # Shorter than the 5 s after which the server closes an idle connection, perhaps just as it is used again.
    limits, headers = httpx.Limits(keepalive_expiry=4.0), {"Authorization": f"Bearer {hub.token}"}
    owner = httpx.AsyncClient(base_url=hub.url, headers=headers, timeout=60, limits=limits)
    async with owner as client, reporting(hub, nodes, tally):
        await asyncio.sleep(8)
        watch = Watch(client)
        watching = asyncio.create_task(watch.keep())
        await _idle(hub, nodes, tally)
        snapshot = hub.snapshot({"main.py": "print('hello')\n"})
        alone = []
        for _ in range(10):
            alone += await submit(client, snapshot, [(1, 1)])
            await asyncio.sleep(0.2)
        await ended(client, 60)
        print(summary("a lone run: submitted -> placed", await placing_s(client, alone)))
        whole = await _drain(hub, client, snapshot, runs, tally)
        watching.cancel()
    print(f"wrongly shown as not ready in {watch.looks} looks: {', '.join(sorted(watch.wrong)) or 'none'}")
    print(f"refused or failed requests: {tally.refused or 'none'}")
    return whole and not watch.wrong


async def _idle(hub: Stack, nodes: int, tally: Tally) -> None:
    meter, before = Meter(hub), len(tally.report_s)
    await asyncio.sleep(IDLE_FOR_S)
    told = tally.report_s[before:]
    meter.show(f"{nodes} idle nodes, {len(told) / IDLE_FOR_S:.0f} reports/s")
    print(summary("report answered, idle", told))


async def _drain(hub: Stack, client: httpx.AsyncClient, snapshot: str, count: int, tally: Tally) -> bool:
    meter, before, begun = Meter(hub), len(tally.report_s), time.monotonic()
    ids = await submit(client, snapshot, [SIZES[index % len(SIZES)] for index in range(count)])
    print(f"{count} runs submitted in {time.monotonic() - begun:.1f} s")
    runs = await ended(client, DRAIN_WITHIN_S)
    seconds, told = time.monotonic() - begun, tally.report_s[before:]
    meter.show(f"{count} runs, {len(told) / seconds:.0f} reports/s")
    print(summary("report answered, while they run", told))
    print(summary("claim answered", tally.claim_s))
    print(summary("submitted -> placed, with its wait", await placing_s(client, ids)))
    each_s, start_s = meter.cpu_s() / count, process_start_s()
    print(f"CPU of the hub: {each_s:.3f} s for each run, its nodes' reports included")
    limits = Limits()
    limits.at_most("a run's CPU to that of a bare process", each_s / start_s, MAX_PROCESS_STARTS)
    states: dict[str, int] = {}
    for run in runs:
        if run["state"] == "Failed":
            print(f"run {run['number']} failed: {run.get('sentence', '')}")
        states[run["state"]] = states.get(run["state"], 0) + 1
    print(f"first submitted -> last ended: {seconds:.1f} s; states {states}")
    return set(states) == {"Completed"} and not limits.exceeded


def process_start_s() -> float:
    """Returns the CPU seconds of a Python process that does nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(STARTS):
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / STARTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--postgresql", action="store_true", help="instead of the embedded database")
    options = parser.parse_args()
    with ExitStack() as parts:
        database = parts.enter_context(postgresql()) if options.postgresql else None
        hub = parts.enter_context(stack(**({} if database is None else {"DATABASE_URL": database.url})))
        try:
            whole = asyncio.run(measure(hub, options.nodes, options.runs))
        except (RuntimeError, httpx.HTTPError):
            print((hub.data / "logs" / "web.log").read_text()[-4000:], file=sys.stderr)
            raise
        if not whole:
            raise SystemExit("not all as it should be: see above")


if __name__ == "__main__":
    main()
