"""What a node costs a hub that has more and more of them: CPU for each second of a node, with 200, 1,000 and
5,000 nodes of 8 GPUs that report every 5 s unless the hub asks for longer pauses. PostgreSQL.

Each number of nodes gets a new hub. What the hub uses without any node is measured first and left out."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from bench.idle import scheduled_s
from bench.scale import enrolled
from bench.support.limits import Limits
from bench.support.postgresql import Database, postgresql
from bench.support.reporting_fleet import Road, Teller, Told
from bench.support.stack import Stack, stack, summary

NODES = (200, 1000, 5000)
EVERY_S, SETTLE_S, ALONE_S = 5.0, 20.0, 15.0
CONNECTIONS = 32
# A second of one of more nodes may cost so many times what one of the fewest costs.
MAX_GROWTH = 1.2


@dataclass(frozen=True)
class Cost:
    """CPU seconds: of the web server and the worker, and of PostgreSQL."""

    hub: float
    database: float

    @classmethod
    def now(cls, hub: Stack, database: Database) -> Cost:
        pids = [int((hub.data / "run" / f"{name}.pid").read_text()) for name in ("web", "worker")]
        return cls(sum(map(scheduled_s, pids)), database.cpu_s())

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.hub - other.hub, self.database - other.database)

    def times(self, factor: float) -> Cost:
        return Cost(self.hub * factor, self.database * factor)


class Fleet:
    """Nodes that report to one hub, over a few connections."""

    def __init__(self, hub: Stack, tokens: dict[str, str], gpus: int) -> None:
        first_at = time.monotonic() + 1
        self._place = urlsplit(hub.url)
        self._nodes = [
            Teller(name, token, gpus, first_at + number * EVERY_S / len(tokens))
            for number, (name, token) in enumerate(tokens.items())
        ]
        self._transports: list[asyncio.Transport] = []
        self.told = Told()

    async def start(self) -> None:
        """Returns when the hub knows all nodes."""
        loop, host, port = asyncio.get_running_loop(), self._place.hostname or "", self._place.port or 0
        for first in range(CONNECTIONS):
            road = partial(Road, self._nodes[first::CONNECTIONS], self.told)
            self._transports.append((await loop.create_connection(road, host, port))[0])
        while len(self.told.answer_s) < len(self._nodes):
            await asyncio.sleep(0.5)
        await asyncio.sleep(SETTLE_S)

    def stop(self) -> None:
        for transport in self._transports:
            transport.abort()
        if self.told.refused:
            raise SystemExit(f"reports were refused: {self.told.refused}")


async def node_cost(hub: Stack, database: Database, options: argparse.Namespace, nodes: int) -> Cost:
    """Returns what one second of a node costs while so many report."""
    fleet = Fleet(hub, await asyncio.to_thread(enrolled, hub, nodes), options.gpus)
    before = Cost.now(hub, database)
    await asyncio.sleep(ALONE_S)
    alone = (Cost.now(hub, database) - before).times(1 / ALONE_S)
    await fleet.start()
    before, marks, started = Cost.now(hub, database), fleet.told.marks(), time.monotonic()
    await asyncio.sleep(options.seconds)
    passed, new = time.monotonic() - started, fleet.told.since(marks)
    used = Cost.now(hub, database) - before - alone.times(passed)
    fleet.stop()
    reports = len(new.answer_s)
    print(
        f"{nodes} nodes: {reports / passed:.0f} reports/s, one of each node in "
        f"{nodes * passed / reports:.1f} s; the hub {used.hub / passed:.0%} of a core, PostgreSQL "
        f"{used.database / passed:.0%}; without a node {alone.hub:.1%} and {alone.database:.1%}"
    )
    print("  " + summary("report -> answer", new.answer_s))
    for name, count in (("report", reports), ("second of a node", nodes * passed)):
        cost = used.times(1 / count)
        print(f"  CPU of a {name}: {cost.hub * 1e3:.3f} ms, and {cost.database * 1e3:.3f} ms of PostgreSQL")
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES, help="the fewest first")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=40)
    options = parser.parse_args()
    costs = []
    for nodes in options.nodes:
        with postgresql() as database, stack(DATABASE_URL=database.url) as hub:
            costs.append(asyncio.run(node_cost(hub, database, options, nodes)))
    limits, first = Limits(), costs[0]
    for nodes, cost in zip(options.nodes[1:], costs[1:], strict=True):
        name = f"a second of one of {nodes} nodes to that of one of {options.nodes[0]}"
        limits.at_most(f"{name}, the hub", cost.hub / first.hub, MAX_GROWTH)
        limits.at_most(f"{name}, PostgreSQL", cost.database / first.database, MAX_GROWTH)
    sys.exit(limits.exit_code())


if __name__ == "__main__":
    main()
