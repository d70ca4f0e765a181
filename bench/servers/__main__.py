"""What a second web server brings: CPU for each report of a node, where each reaches the server that has the
node's session, and where every other one reaches the wrong server, as behind a proxy without sticky
sessions."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.idle import cpu_s
from bench.support.limits import Limits
from bench.support.postgresql import postgresql
from bench.support.reporting_fleet import Road, Teller, Told
from bench.support.stack import summary
from tests.harness import guard
from tests.servers.cluster import FurtherServer, ServerCluster

CONNECTIONS = 16
SETTLE_S, IDLE_S = 12.0, 10.0
# Turns of both, one after the other: other work on the machine disturbs both alike.
ROUNDS = 3
# Two servers take at least this many times what one takes, by CPU.
MIN_GAIN = 1.7
ENROL = """
from clusters.enrolment.node_tokens import enrol_node
for number in range({count}):
    node, token = enrol_node("bench", f"bench-{{number}}")
    print("TOKEN", node.name, token)
"""
OWNERS = """
from clusters.models import Node
from workspaces.servers.ring import Ring
from workspaces.servers.server_registry import web_peers
peers = web_peers(max_offset_s=60)
ring = Ring()
ring.update("nobody", peers, 0.0)
for name, digest in Node.objects.values_list("name", "token_digest"):
    print("OWNER", name, ring.owner(digest).name)
"""


def shell_lines(server: FurtherServer, code: str, mark: str) -> dict[str, str]:
    """Returns what the code prints in one of the hub's processes after the mark: name -> value."""
    out = server.manage("shell", "-c", code).stdout
    return dict(line.split()[1:3] for line in out.splitlines() if line.startswith(mark))


class Fleet:
    """Nodes that report numbers to these servers."""

    def __init__(self, tokens: dict[str, str], gpus: int, servers: list[FurtherServer]) -> None:
        self.tokens, self._gpus, self._servers = tokens, gpus, servers
        self.answer_s: list[float] = []

    async def cpu_per_report(self, choose: Callable[[str], int], seconds: float, idle: float) -> float:
        """Returns the CPU seconds of all servers for one report, without what they use when none comes
        (`idle`, of one core). `choose`: name of a node -> which server its reports reach."""
        told, begin = Told(), time.monotonic() + 1
        nodes = [
            Teller(name, token, self._gpus, begin + index * 5.0 / len(self.tokens))
            for index, (name, token) in enumerate(self.tokens.items())
        ]
        loop, transports = asyncio.get_running_loop(), []
        for number, server in enumerate(self._servers):
            own = [node for node in nodes if choose(node.name) == number]
            for first in range(CONNECTIONS // len(self._servers)):
                road = partial(Road, own[first :: CONNECTIONS // len(self._servers)], told)
                transports.append((await loop.create_connection(road, "127.0.0.1", server.port))[0])
        await asyncio.sleep(SETTLE_S)
        before, marks, started = self.cpu_s(), told.marks(), time.monotonic()
        await asyncio.sleep(seconds)
        used, new = self.cpu_s() - before, told.since(marks)
        passed = time.monotonic() - started
        for transport in transports:
            transport.abort()
        if told.refused:
            raise SystemExit(f"reports were refused: {told.refused}")
        self.answer_s = new.answer_s
        return (used - idle * passed) / len(new.answer_s)

    def cpu_s(self) -> float:
        return sum(cpu_s(server.pid("web")) for server in self._servers)

    async def idle(self) -> float:
        """Returns the share of one core that all servers use while nobody reports."""
        before = self.cpu_s()
        await asyncio.sleep(IDLE_S)
        return (self.cpu_s() - before) / IDLE_S


async def measure(fleet: Fleet, owners: dict[str, str], seconds: float) -> tuple[float, float]:
    """Returns the CPU seconds of a report that reaches its server, and of one behind a proxy."""
    idle = await fleet.idle()
    names = list(owners)
    direct, spread = [], []
    for number in range(ROUNDS):
        direct.append(await fleet.cpu_per_report(lambda name: int(owners[name][-1]), seconds, idle))
        answers = fleet.answer_s
        spread.append(await fleet.cpu_per_report(lambda name: names.index(name) % 2, seconds, idle))
        print(
            f"round {number + 1}: {direct[-1] * 1e3:.2f} ms of CPU direct, {spread[-1] * 1e3:.2f} ms spread"
        )
    print(f"both servers idle: {idle * 100:.1f} % of a core")
    print(summary("report -> answer, direct", answers))
    print(summary("report -> answer, spread", fleet.answer_s))
    return sorted(direct)[ROUNDS // 2], sorted(spread)[ROUNDS // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=600)
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    guard.start()
    with postgresql() as database, tempfile.TemporaryDirectory(prefix="th-bench-") as folder:
        cluster = ServerCluster(Path(folder), database.url, count=0, nodes=0)
        cluster.servers = [cluster.further(f"web-{number}", "web") for number in range(2)]
        cluster.valkey.start()
        try:
            for server in cluster.servers:
                server.start()
            tokens = shell_lines(cluster.servers[0], ENROL.format(count=options.nodes), "TOKEN")
            owners = shell_lines(cluster.servers[0], OWNERS, "OWNER")
            fleet = Fleet(tokens, options.gpus, cluster.servers)
            direct, spread = asyncio.run(measure(fleet, owners, options.seconds))
        finally:
            cluster.stop()
    limits = Limits()
    limits.at_least(
        "what two servers take to what one takes, by CPU per report", 2 * direct / spread, MIN_GAIN
    )
    sys.exit(limits.exit_code())


if __name__ == "__main__":
    main()
