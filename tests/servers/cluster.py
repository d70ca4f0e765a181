"""A hub of several servers: PostgreSQL, a Valkey at a port, nginx without sticky sessions, real web servers,
workers and agents, all on the loopback."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx

from simulator import Scenario, environment
from tests.harness import guard
from tests.hub import PROJECT, Hub, eventually, free_port
from tests.servers.proxies import Proxy
from tests.servers.valkey_server import ValkeyServer
from trainhub.up.children import end_with_parent


class FurtherServer(Hub):
    """One of several: `manage.py up --only …`."""

    def __init__(self, data_dir: Path, name: str, parts: str, **settings: str) -> None:
        super().__init__(data_dir, **settings)
        self.name, self.arguments = name, ("up", "--only", parts)
        self.address = f"127.0.0.1:{free_port()}"
        self.settings |= {"SERVER_NAME": name, "SERVER_ADDRESS": self.address}
        self.console = data_dir.parent / f"{name}.console"

    @property
    def own_folder(self) -> Path:
        return self.data_dir / "servers" / self.name

    def kill_all(self) -> None:
        """kill -9 of the server with everything that it has started, as when its machine dies."""
        self.signal_all(signal.SIGKILL)
        assert self.process is not None
        self.process.wait(20)
        for name in ("web", "worker"):
            (self.own_folder / "run" / f"{name}.pid").unlink(missing_ok=True)

    def signal_all(self, number: signal.Signals) -> None:
        """To the server and its parts; first to the one that would start others again."""
        assert self.process is not None
        parts = [self.pid(name) for name in ("web", "worker")]
        for pid in (self.process.pid, *filter(None, parts)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


class Agent:
    """A real node agent that reaches the hub by the proxy. `world`: its simulated GPUs."""

    def __init__(self, name: str, folder: Path, url: str, token: str, world: Scenario | None = None) -> None:
        self.name, self.folder, self.world = name, folder, world
        folder.mkdir(parents=True)
        (folder / "token").write_text(token)
        (folder / "token").chmod(0o600)
        self._url = url
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        settings = {
            "TRAINHUB_HUB_URL": self._url,
            "TRAINHUB_NODE_NAME": self.name,
            "TRAINHUB_NODE_TOKEN_FILE": str(self.folder / "token"),
            "TRAINHUB_NODE_DIR": str(self.folder / "node"),
            "TRAINHUB_NODE_CACHE": str(self.folder / "cache"),
            "TRAINHUB_NODE_CONTAINERS": "off",
            "PYTHONPATH": str(PROJECT),
        }
        if self.world is not None:
            self.show()
            settings |= environment(self.folder / "scenario")
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "trainhub_node", "run"],
                env={**kept, **settings},
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
            )

    def show(self) -> None:
        """Its GPUs tell from now on what `world` says."""
        assert self.world is not None
        self.world.write(self.folder / "scenario")

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(30)

    def log_of(self, run: str, attempt: int = 1, name: str = "70_driver_log.txt") -> bytes:
        """A log where the process wrote it."""
        return (self.folder / "node" / "attempts" / f"{run}-{attempt}" / "logs" / name).read_bytes()


class ServerCluster:
    """`servers`: web-0, web-1 …, each with a worker of its own; `hub` speaks to the API by the proxy, which
    listens at `host`."""

    def __init__(
        self,
        folder: Path,
        database: str,
        *,
        count: int = 2,
        nodes: int = 2,
        host: str = "127.0.0.1",
        **settings: str,
    ) -> None:
        self.folder, self.data = folder, folder / "data"
        self.port = free_port()
        self.valkey = ValkeyServer(folder / "valkey")
        self.settings = {
            "DATABASE_URL": database,
            "REDIS_URL": self.valkey.url,
            "PUBLIC_URL": f"http://{host}:{self.port}",
            "TRUSTED_PROXIES": "127.0.0.1",
            "SECRETS_KEYRING": str(folder / "keyring" / "keys"),
            **settings,
        }
        self.servers = [self.further(f"web-{number}") for number in range(count)]
        self.proxy = Proxy(folder / "nginx", self.servers, f"{host}:{self.port}")
        self.agents: list[Agent] = []
        self._nodes = nodes

    @property
    def hub(self) -> Hub:
        """The first server, as clients reach it: by the proxy."""
        return self.servers[0]

    def further(self, name: str, parts: str = "web,worker", **settings: str) -> FurtherServer:
        server = FurtherServer(self.data, name, parts, **{**self.settings, **settings})
        server.url = server.browser_url = self.settings["PUBLIC_URL"]
        return server

    def start(self) -> ServerCluster:
        guard.own_folder(str(self.folder))
        self.valkey.start()
        for server in self.servers:
            server.start()
        self.proxy.start()
        eventually(self.hub.answers, 20, "the proxy answers")
        for number in range(self._nodes):
            self.add_agent(f"node-{number}")
        eventually(lambda: len(self.ready_nodes()) == self._nodes, 60, "all nodes are ready")
        return self

    def add_agent(self, name: str, url: str = "", world: Scenario | None = None) -> Agent:
        code = (
            f"from clusters.enrolment.node_tokens import enrol_node; print(enrol_node('local', '{name}')[1])"
        )
        token = self.hub.manage("shell", "-c", code).stdout.strip().splitlines()[-1]
        agent = Agent(name, self.folder / name, url or self.proxy.url, token, world)
        self.agents.append(agent)
        agent.start()
        return agent

    def ready_nodes(self) -> list[str]:
        with self.hub.client() as client:
            nodes = client.get("/api/v1/nodes/").raise_for_status().json()
        return [node["name"] for node in nodes if node["status"] == "ready"]

    def stop(self) -> None:
        with contextlib.suppress(AssertionError, httpx.HTTPError):
            self.hub.cancel_all()
        for agent in self.agents:
            agent.stop()
        self.proxy.stop()
        for server in self.servers:
            server.stop()
        self.valkey.stop()


@contextlib.contextmanager
def running(cluster: ServerCluster) -> Iterator[ServerCluster]:
    try:
        yield cluster.start()
    finally:
        cluster.stop()
