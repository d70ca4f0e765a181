"""The same with two servers, each with a worker, behind a proxy without sticky sessions."""

from __future__ import annotations

import random
import time
from pathlib import Path

from simulator import environment
from tests.chaos.troubles import TROUBLES, Trouble
from tests.chaos.world import SETTINGS, ChaosHost, ChaosHosts
from tests.hosts.bench import TRAINHUB_NODE
from tests.hub import PROJECT, Hub
from tests.journeys.runs import Runs
from tests.servers.cluster import ServerCluster


class ProxiedHost(ChaosHost):
    """A machine whose agent reaches the hub by the proxy, and is set up by its environment."""

    def join(self, hub: Hub, python: str) -> None:
        enrolled = f"enrol_node('gang', '{self.name}')[1]"
        code = f"from clusters.enrolment.node_tokens import enrol_node; print({enrolled})"
        token = hub.manage("shell", "-c", code).stdout.strip().splitlines()[-1]
        (self.folder / "token").write_text(token)
        (self.folder / "token").chmod(0o600)
        self.settings = {
            "TRAINHUB_HUB_URL": hub.url,
            "TRAINHUB_NODE_NAME": self.name,
            "TRAINHUB_NODE_TOKEN_FILE": "/tmp/token",
            "TRAINHUB_NODE_DIR": "/tmp/node",
            "TRAINHUB_NODE_CACHE": self.cache,
            "TRAINHUB_NODE_CONTAINERS": "off",
            "TRAINHUB_NODE_PYTHON": python,
            "PYTHONPATH": str(PROJECT),
            "LD_PRELOAD": "/tmp/clock.so",
        }

    def start_agent(self) -> None:
        snapshot = environment(Path("/tmp/scenario")) if self.world else {}
        self.spawn(self.agent_log, *TRAINHUB_NODE, "run", **self.settings, **snapshot)


class ChaosServers(ChaosHosts):
    """`hub` speaks to the API by the proxy."""

    hosts: list[ProxiedHost]  # type: ignore[assignment]  # nobody puts others in
    host_type = ProxiedHost

    def __init__(self, folder: Path, python: str) -> None:
        super().__init__(folder, python)
        self.servers = ServerCluster(
            folder,
            self.database.url,
            nodes=0,
            host=self.bridge.hub_address,
            NODE_UNREACHABLE_AFTER=SETTINGS["NODE_UNREACHABLE_AFTER"],
            NODE_LOST_AFTER=SETTINGS["NODE_LOST_AFTER"],
        )
        self.hubs = list(self.servers.servers)

    def start_hub(self) -> None:
        self.bridge.build()
        self.mount_disk()
        self.database.start()
        self.servers.start()
        self.hub = self.servers.hub  # type: ignore[assignment]  # of another kind
        self.runs = Runs(self.hub)

    def stop(self) -> None:
        try:
            super().stop()
        finally:
            self.servers.stop()

    def kill_server(self, number: int, seconds: float) -> str:
        """Everything of it at once, as when its machine dies; it comes back after so many seconds."""
        server = self.servers.servers[number]
        server.kill_all()
        time.sleep(seconds)
        server.start()
        return server.name


def kill_a_server(world: ChaosHosts, chance: random.Random) -> str:
    number, seconds = chance.randrange(len(world.hubs)), chance.uniform(0, 10)
    assert isinstance(world, ChaosServers)
    return f"kill -9 of everything of {world.kill_server(number, seconds)}, for {seconds:.1f} s"


# More often than anything else.
TROUBLES_OF_SERVERS: tuple[Trouble, ...] = (*TROUBLES, *3 * (kill_a_server,))
