"""A hub of 200 simulated nodes that all have runs, with a long queue: submissions, pages and placements
meanwhile, compared with the same before there is a queue. PostgreSQL.

The nodes take one run each, and end it after some seconds. Most of the queue is written to the database as
a script's submissions would be, those that are measured come through the API."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from bench.idle import scheduled_s
from bench.scale import CLUSTER, Watch, placing_s, process_start_s, reporting, spec
from bench.support.limits import Limits, median
from bench.support.postgresql import Database, postgresql
from bench.support.simulated_nodes import Tally
from bench.support.stack import Stack, stack, summary

PAGES = (
    "/runs/",
    "/runs/{run}/",
    f"/clusters/{CLUSTER}/",
    f"/clusters/{CLUSTER}/queue/",
    "/api/v1/runs/{run}/",
)
# A session of the administrator, and so many persons, to whom the runs in the queue belong in turn.
PREPARE = """
import json
from django.conf import settings
from django.test import Client
from workspaces.models import User
client = Client()
client.force_login(User.objects.get(username="admin"))
name = settings.SESSION_COOKIE_NAME
print("COOKIE" + json.dumps({name: client.cookies[name].value}))
User.objects.bulk_create(User(username=f"person-{n}") for n in range(10))
"""
FILL = """
from jobs.models import Run, RunEvent
from workspaces.models import User, Workspace
model = Run.objects.get(pk="%s")
people = list(User.objects.filter(username__startswith="person-"))
workspace = Workspace.objects.get(pk=model.workspace_id)
first, count = workspace.last_run_number + 1, %d
Workspace.objects.filter(pk=workspace.pk).update(last_run_number=first + count)
runs = [
    Run(number=first + n, workspace=workspace, experiment_id=model.experiment_id, spec=model.spec,
        display_name=f"main {first + n}", preview=model.preview, created_by=people[n %% len(people)])
    for n in range(count)
]
Run.objects.bulk_create(runs, batch_size=500)
events = [RunEvent(run=run, to_state="Queued", message="Submitted.") for run in runs]
RunEvent.objects.bulk_create(events, batch_size=500)
"""
# From the end of each run on a node to the placement of the next one there, after a moment, in seconds.
GAPS = """
import json
from itertools import groupby
from clusters.models import Lease
rows = Lease.objects.filter(node__cluster__name="%s", slots=0).order_by("node_id", "created_at")
gaps = []
for _, leases in groupby(rows.values_list("node_id", "created_at", "released_at"), key=lambda row: row[0]):
    leases = list(leases)
    for (_, _, end), (_, begin, _) in zip(leases, leases[1:]):
        gaps += [(begin - end).total_seconds()] if begin.timestamp() > %f else []
print("GAPS" + json.dumps(gaps))
"""
WAITING = 'from jobs.models import Run; print("WAITING", Run.objects.filter(state="Queued").count())'
# Times the same without a queue.
MAX_ANSWER, MAX_PAGE = 2.0, 3.0
# Times the CPU of a bare Python process, which is 1 s and 0.3 s on the machine with 2 cores.
MAX_PLACING_STARTS, MAX_PAGE_STARTS = 105.0, 32.0
SETTLE_S, EVERY_S = 8.0, 2.0


@dataclass
class Times:
    """Seconds of one phase. `pages`: by the path."""

    answers: list[float] = field(default_factory=list)
    pages: dict[str, list[float]] = field(default_factory=dict)
    probes: list[str] = field(default_factory=list)
    placing: list[float] = field(default_factory=list)

    def show(self, what: str) -> None:
        print(f"{what}:")
        print(summary("  submission answered", self.answers))
        for path, seconds in self.pages.items():
            print(summary(f"  {path}", seconds))
        if self.placing:
            print(summary("  submitted -> placed, of what is free", self.placing))


class Visitor:
    """Submits runs and loads pages as people do, while the hub works."""

    def __init__(self, client: httpx.AsyncClient, pages: httpx.AsyncClient, snapshot: str) -> None:
        self._client, self._pages, self._snapshot = client, pages, snapshot
        self.last: dict[str, Any] = {}

    async def submit(self, times: Times) -> dict[str, Any]:
        """Submits a run that takes a whole node."""
        begun = time.monotonic()
        answer = await self._client.post("/api/v1/runs/", json=spec(self._snapshot, 1, 8))
        times.answers.append(time.monotonic() - begun)
        self.last = dict(answer.raise_for_status().json())
        return self.last

    async def probe(self, times: Times) -> None:
        """Submits a run for which there is room: it needs no GPU."""
        body = spec(self._snapshot, 1, 1) | {"resources": {"cluster": CLUSTER, "gpus_per_node": 0}}
        answer = await self._client.post("/api/v1/runs/", json=body)
        times.probes.append(str(answer.raise_for_status().json()["id"]))

    async def load_pages(self, times: Times) -> None:
        for path in PAGES:
            is_api = path.startswith("/api/")
            run = self.last["id"] if is_api else self.last["number"]
            begun = time.monotonic()
            answer = await (self._client if is_api else self._pages).get(path.format(run=run))
            times.pages.setdefault(path, []).append(time.monotonic() - begun)
            if answer.status_code != 200:
                raise RuntimeError(f"{path}: {answer.status_code}")

    async def visit(self, seconds: float, per_second: float) -> Times:
        """Submits evenly for so long, and loads each page and submits a probe every EVERY_S."""
        times = Times()
        await asyncio.gather(
            self._repeat(lambda: self.submit(times), seconds, 1 / per_second),
            self._repeat(lambda: self.load_pages(times), seconds, EVERY_S, after_s=1.0),
            self._repeat(lambda: self.probe(times), seconds, EVERY_S, after_s=0.5),
        )
        await asyncio.sleep(3)
        times.placing = await placing_s(self._client, times.probes)
        return times

    async def _repeat(
        self, action: Callable[[], Awaitable[object]], seconds: float, every_s: float, after_s: float = 0.0
    ) -> None:
        begun, due = time.monotonic(), time.monotonic() + after_s
        while due < begun + seconds:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await action()
            due = max(due + every_s, time.monotonic())


def cpu_of(hub: Stack, database: Database) -> dict[str, float]:
    """Returns the CPU seconds taken so far: by the hub's processes, the database, this script with its nodes,
    and by everything on the machine."""
    pids = {name: int((hub.data / "run" / f"{name}.pid").read_text()) for name in ("web", "worker")}
    ticks = [int(number) for number in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    whole = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    return {
        **{name: scheduled_s(pid) for name, pid in pids.items()},
        "database": database.cpu_s(),
        "simulation": time.process_time(),
        "machine": whole,
    }


def printed(hub: Stack, code: str, mark: str) -> str:
    """Returns what the code prints after the mark in a process of the hub."""
    return hub.shell(code).partition(mark)[2].splitlines()[0]


async def measure(
    hub: Stack, database: Database, options: argparse.Namespace
) -> tuple[Times, Times, list[float], bool]:
    """Returns the times without and with a queue, from the end of each run to the next placement, and whether
    all was as it should be."""
    tally, limits = Tally(), httpx.Limits(keepalive_expiry=4.0)
    cookies = json.loads(await asyncio.to_thread(printed, hub, PREPARE, "COOKIE"))
    common: dict[str, Any] = {"base_url": hub.url, "timeout": 60, "limits": limits}
    owner = httpx.AsyncClient(headers={"Authorization": f"Bearer {hub.token}"}, **common)
    browser = httpx.AsyncClient(cookies=cookies, **common)
    async with owner as client, browser as pages, reporting(hub, options.nodes, tally, options.run_s):
        await asyncio.sleep(SETTLE_S)
        watch = Watch(client)
        watching = asyncio.create_task(watch.keep())
        visitor = Visitor(client, pages, hub.snapshot({"main.py": "print('hello')\n"}))
        # All nodes get runs, spread over the time that one takes, as they are at any later moment.
        before = await visitor.visit(options.run_s, options.nodes / options.run_s)
        before.show("without a queue")
        count = options.queued - options.queued // 10
        await asyncio.to_thread(hub.shell, FILL % (visitor.last["id"], count))
        await asyncio.sleep(SETTLE_S)
        since, cpu, begun = time.time(), cpu_of(hub, database), time.monotonic()
        during = await visitor.visit(options.seconds, options.queued / 10 / options.seconds)
        seconds = time.monotonic() - begun
        used = {name: (now - cpu[name]) / seconds for name, now in cpu_of(hub, database).items()}
        shares = [f"{name} {share:.0%} of a core" for name, share in used.items()]
        waiting = await asyncio.to_thread(printed, hub, WAITING, "WAITING")
        during.show(f"with a queue, of which {waiting.strip()} wait still; {', '.join(shares)}")
        gaps: list[float] = json.loads(await asyncio.to_thread(printed, hub, GAPS % (CLUSTER, since), "GAPS"))
        print(summary("  end of a run -> next one placed on its node", gaps))
        print(
            summary("  report answered", tally.report_s) + "\n" + summary("  claim answered", tally.claim_s)
        )
        watching.cancel()
    print(f"wrongly shown as not ready: {', '.join(sorted(watch.wrong)) or 'none'}; refused: {tally.refused}")
    return before, during, gaps, not watch.wrong and not tally.refused


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--queued", type=int, default=5000, help="a tenth of them through the API")
    parser.add_argument("--run-s", type=float, default=20.0, help="how long a run takes")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the measurement with a queue")
    options = parser.parse_args()
    with postgresql() as database, stack(DATABASE_URL=database.url) as hub:
        try:
            before, during, gaps, whole = asyncio.run(measure(hub, database, options))
        except (RuntimeError, httpx.HTTPError):
            print((hub.data / "logs" / "web.log").read_text()[-4000:], file=sys.stderr)
            raise
    limits = Limits()
    answer = median(during.answers) / median(before.answers)
    limits.at_most("a submission's answer to that without a queue", answer, MAX_ANSWER)
    for path, seconds in during.pages.items():
        limits.at_most(
            f"{path} to that without a queue", median(seconds) / median(before.pages[path]), MAX_PAGE
        )
    start_s = process_start_s()
    slowest = max(map(median, during.pages.values()))
    limits.at_most("the slowest page to a bare process", slowest / start_s, MAX_PAGE_STARTS)
    placing, following = median(during.placing), median(gaps)
    limits.at_most("a placement to a bare process", placing / start_s, MAX_PLACING_STARTS)
    limits.at_most("the next placement on a node to the same", following / start_s, MAX_PLACING_STARTS)
    return limits.exit_code() or int(not whole)


if __name__ == "__main__":
    sys.exit(main())
