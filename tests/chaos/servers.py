"""The same with two servers, each with a worker, behind a proxy without sticky sessions, and with an object
store."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path

from simulator import environment
from tests.chaos.world import SETTINGS, ChaosHost, ChaosHosts, empty, fill
from tests.harness import guard
from tests.hosts.bench import TRAINHUB_NODE
from tests.hosts.unhealthy import build_clock
from tests.hub import PROJECT, Hub, eventually
from tests.journeys.runs import Runs
from tests.servers.cluster import FurtherServer, ServerCluster
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET

OWN_DISK_MIB = 32


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
    """`hub` speaks to the API by the proxy. `store`: where the hub keeps its files; nodes read there, too.
    Each server has a small disk for what is its own, beside the shared one, and a clock that can be set."""

    hosts: list[ProxiedHost]  # type: ignore[assignment]  # nobody puts others in
    host_type = ProxiedHost
    parts = ("web", "worker")

    def __init__(self, folder: Path, python: str) -> None:
        super().__init__(folder, python)
        self._table = f"th{secrets.token_hex(3)}"
        self._clocks = folder / "clocks"

    def start_hub(self) -> None:
        self.bridge.build()
        self.mount_disk()
        self.database.start()
        self.store = S3Server(self.bridge.hub_address)
        self.servers = ServerCluster(
            self._folder,
            self.database.url,
            nodes=0,
            host=self.bridge.hub_address,
            NODE_UNREACHABLE_AFTER=SETTINGS["NODE_UNREACHABLE_AFTER"],
            NODE_LOST_AFTER=SETTINGS["NODE_LOST_AFTER"],
            BLOB_STORE=f"s3://{BUCKET}/hub",
            BLOB_STORE_ENDPOINT=self.store.url,
            BLOB_STORE_KEY_ID=KEY_ID,
            BLOB_STORE_SECRET=SECRET,
            BLOB_STORE_PRESIGN="1",
            # So little that copies of what is in the store go soon.
            BLOB_CACHE_BYTES="500000",
        )
        self.hubs = list(self.servers.servers)
        self._clocks.mkdir()
        build_clock(self._clocks / "clock.so")
        for server in self.servers.servers:
            self.mount(server.own_folder, OWN_DISK_MIB)
            self.set_server_clock(server, behind_s=0)
            server.settings["LD_PRELOAD"] = str(self._clocks / "clock.so")
            server.settings["SECONDS_BEHIND"] = str(self._clocks / server.name)
        self.servers.start()
        self.hub = self.servers.hub  # type: ignore[assignment]  # of another kind
        self.runs = Runs(self.hub)

    def stop_hub(self) -> None:
        self.heal_link()
        self.servers.stop()
        self.store.close()

    def mend(self) -> None:
        self.store.is_away, self.store.rate = False, None
        self.heal_link()
        for server in self.servers.servers:
            self.set_server_clock(server, behind_s=0)
            self.empty_own_disk(server)
        super().mend()

    def check_files(self) -> None:
        """All of them are in the store, with the right bytes."""
        waiting = "waiting for their upload"
        eventually(
            lambda: waiting not in self.hub.manage("blobs", "status").stdout, 120, "all files are uploaded"
        )
        self.hub.manage("blobs", "verify", "--read")

    def set_server_clock(self, server: FurtherServer, *, behind_s: int) -> None:
        aside = self._clocks / "aside"
        aside.write_text(f"{behind_s}\n")
        aside.replace(self._clocks / server.name)

    def fill_own_disk(self, server: FurtherServer) -> None:
        fill(server.own_folder, free_bytes=0)

    def empty_own_disk(self, server: FurtherServer) -> None:
        empty(server.own_folder)

    def cut_link(self) -> None:
        """Nothing that one server sends to the other arrives, and nothing is refused."""
        ports = ",".join(server.address.rpartition(":")[2] for server in self.servers.servers)
        guard.on_exit("nft", "delete", "table", "inet", self._table)
        rules = (
            f"add table inet {self._table}",
            f"add chain inet {self._table} input {{ type filter hook input priority 0; }}",
            f"add rule inet {self._table} input tcp dport {{ {ports} }} drop",
            f"add rule inet {self._table} input tcp sport {{ {ports} }} drop",
        )
        subprocess.run(["nft", "-f", "-"], input="\n".join(rules), text=True, check=True)

    def heal_link(self) -> None:
        subprocess.run(["nft", "delete", "table", "inet", self._table], check=False, capture_output=True)
