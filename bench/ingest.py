"""Numbers of many GPUs coming in: nodes that measure every second report to one web process; nobody looks, or
at all of them."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from contextlib import ExitStack
from functools import partial
from urllib.parse import urlsplit

import websockets

from bench.idle import cpu_s, pss_mib
from bench.scale import enrolled
from bench.support.limits import Limits
from bench.support.postgresql import Database, postgresql
from bench.support.reporting_fleet import Road, Teller, Told
from bench.support.stack import Stack, stack, summary

SETTLE_S = 25.0
PARTS = 4
SOCKET_NODES = 64
COUNT = """
from clusters.models import TelemetrySlice
from django.db.models import Sum
from django.db.models.functions import Length
print("ROWS", TelemetrySlice.objects.count(), TelemetrySlice.objects.aggregate(n=Sum(Length("data")))["n"])
"""


async def measure(hub: Stack, database: Database | None, options: argparse.Namespace) -> bool:
    told = Told()
    now = time.monotonic()
    tokens = enrolled(hub, options.nodes).items()
    spread = 5.0 / options.nodes
    nodes = [
        Teller(name, token, options.gpus, now + 2 + index * spread)
        for index, (name, token) in enumerate(tokens)
    ]
    place = urlsplit(hub.url)
    # The server closes a connection that is silent for 5 s, as long as a node may be.
    loop, count = asyncio.get_running_loop(), max(1, min(options.nodes // 5, options.connections))
    for first in range(count):
        await loop.create_connection(
            partial(Road, nodes[first::count], told), place.hostname or "", place.port or 0
        )
    heard: list[int] = [0]
    watching = (
        [asyncio.create_task(_watch(hub, names, heard)) for names in _dozens(nodes)]
        if options.watched
        else []
    )
    while len(told.answer_s) < options.nodes:
        await asyncio.sleep(0.5)
    await asyncio.sleep(SETTLE_S)
    whole = await _sustain(hub, database, told, heard, options.seconds)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return whole


class Meter:
    """Seconds of CPU by now, of each part."""

    def __init__(self, hub: Stack, database: Database | None) -> None:
        self.web = int((hub.data / "run" / "web.pid").read_text())
        self._database = database

    def now(self) -> dict[str, float]:
        found = {"web process": cpu_s(self.web), "load": cpu_s(os.getpid())}
        return found if self._database is None else {**found, "PostgreSQL": self._database.cpu_s()}


async def _sustain(
    hub: Stack, database: Database | None, told: Told, heard: list[int], seconds: float
) -> bool:
    meter, lags = Meter(hub, database), []
    for part in range(PARTS):
        cpu, before, messages, begun = meter.now(), told.marks(), heard[0], time.monotonic()
        await asyncio.sleep(seconds / PARTS)
        passed, new = time.monotonic() - begun, told.since(before)
        busy = ", ".join(
            f"{name} {(now - cpu[name]) / passed * 100:.0f} %" for name, now in meter.now().items()
        )
        print(
            f"part {part + 1} of {PARTS}, {passed:.0f} s: {len(new.answer_s) / passed:.0f} reports/s, "
            f"{len(new.stored_s) / passed:.0f} buckets/s, {new.sent_bytes / passed / 2**20:.1f} MiB/s, "
            f"{(heard[0] - messages) / passed:.0f} messages/s; CPU: {busy}"
        )
        print("  " + summary("report -> answer", new.answer_s))
        print("  " + summary("report waits for its connection", new.late_s))
        print("  " + summary("bucket's end -> its confirmation", new.stored_s))
        lags.append(sorted(new.stored_s)[len(new.stored_s) // 2])
    rows, size = _stored(hub)
    print(f"stored: {rows} slices, {size / 2**20:.1f} MiB; web process: {pss_mib(meter.web):.0f} MiB")
    print(f"refused: {told.refused or 'none'}")
    limits = Limits()
    limits.at_most(
        "the last part's delay of buckets to 2 s more than the first part's", lags[-1] / (lags[0] + 2), 1
    )
    return not told.refused and not limits.exceeded


def _stored(hub: Stack) -> tuple[int, int]:
    """Rows and their bytes."""
    rows, size = hub.shell(COUNT).partition("ROWS")[2].split()[:2]
    return int(rows), int(size)


async def _watch(hub: Stack, names: list[str], heard: list[int]) -> None:
    address = f"{hub.url.replace('http', 'ws', 1)}/ws/telemetry/?nodes={','.join(names)}"
    headers = {"Authorization": f"Bearer {hub.token}"}
    async with websockets.connect(
        address, additional_headers=headers, max_size=None, compression=None
    ) as socket:
        async for _ in socket:
            heard[0] += 1


def _dozens(nodes: list[Teller]) -> list[list[str]]:
    names = [node.name for node in nodes]
    return [names[first : first + SOCKET_NODES] for first in range(0, len(names), SOCKET_NODES)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument(
        "--watched", action="store_true", help="somebody looks at every node: every second's samples travel"
    )
    parser.add_argument("--sqlite", action="store_true", help="the embedded database instead of PostgreSQL")
    options = parser.parse_args()
    with ExitStack() as parts:
        database = None if options.sqlite else parts.enter_context(postgresql())
        hub = parts.enter_context(stack(**({} if database is None else {"DATABASE_URL": database.url})))
        if not asyncio.run(measure(hub, database, options)):
            raise SystemExit("reports were refused, or buckets wait longer and longer: see above")


if __name__ == "__main__":
    main()
