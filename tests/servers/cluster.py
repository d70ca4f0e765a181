"""A hub of several servers: PostgreSQL, a Valkey at a port, nginx without sticky sessions, real web servers,
workers and agents, all on the loopback."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.harness import guard
from tests.hub import PROJECT, Hub, eventually, free_port
from trainhub.up.children import end_with_parent
from trainhub.up.valkey import _binary


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
        assert self.process is not None
        parts = [self.pid(name) for name in ("web", "worker")]
        for pid in (self.process.pid, *filter(None, parts)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(20)
        for name in ("web", "worker"):
            (self.own_folder / "run" / f"{name}.pid").unlink(missing_ok=True)


class Proxy:
    """nginx with the example of docs/servers.md, at `url`."""

    def __init__(self, folder: Path, servers: list[FurtherServer], address: str) -> None:
        self.folder, self._servers, self._address = folder, servers, address
        folder.mkdir(parents=True, exist_ok=True)
        self.url = f"http://{address}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        temporary = "".join(
            f"{kind}_temp_path {self.folder}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        # pytest's folders are closed to the account that nginx would take.
        user = "user root;\n" if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(
            f"daemon off;\n{user}worker_processes 1;\npid {self.folder}/pid;\n"
            f"error_log {self.folder}/error.log;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{temporary}{self._example()}}}\n"
        )
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        self._process = subprocess.Popen(
            [
                program,
                "-p",
                str(self.folder),
                "-e",
                f"{self.folder}/error.log",
                "-c",
                f"{self.folder}/nginx.conf",
            ],
            stderr=subprocess.DEVNULL,
            preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
        )

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)

    def _example(self) -> str:
        text = (PROJECT / "docs" / "servers.md").read_text()
        (block,) = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)
        lines = "\n".join(
            f"    server 127.0.0.1:{server.port} max_fails=1 fail_timeout=2s;" for server in self._servers
        )
        block = re.sub(r"    server 10\.0\.0\.11.*?\n    server 10\.0\.0\.12.*?\n", f"{lines}\n", block)
        block = re.sub(r"    ssl_certificate.*\n", "", block)
        block = block.replace("listen 443 ssl", f"listen {self._address}")
        return str(block.replace("hub.example.org", self._address.partition(":")[0]))


class Cutter(threading.Thread):
    """A proxy before the proxy that cuts each connection after some seconds or bytes, whatever it carries."""

    def __init__(self, target: int, after_s: float | None = None, after_bytes: float = math.inf) -> None:
        super().__init__(daemon=True)
        self._target, self._after_s, self._after_bytes = target, after_s, after_bytes
        self.port, self.cut = free_port(), 0
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        self._loop.run_until_complete(asyncio.start_server(self._pass_on, "127.0.0.1", self.port))
        self._loop.run_forever()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join(10)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", self._target)
        ways = [
            asyncio.create_task(_copy(*way, self._after_bytes)) for way in ((reader, ours), (theirs, writer))
        ]
        done, _ = await asyncio.wait(ways, timeout=self._after_s, return_when=asyncio.FIRST_COMPLETED)
        self.cut += not done or any(way.result() for way in done)
        for way in ways:
            way.cancel()
        for end in (writer, ours):
            end.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: float) -> bool:
    """Returns whether there was more than so many bytes."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
            limit -= len(data)
            if limit < 0:
                return True
    return False


class Agent:
    """A real node agent that reaches the hub by the proxy."""

    def __init__(self, name: str, folder: Path, url: str, token: str) -> None:
        self.name, self.folder = name, folder
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
        self.port, self.valkey_port = free_port(), free_port()
        self.settings = {
            "DATABASE_URL": database,
            "REDIS_URL": f"redis://127.0.0.1:{self.valkey_port}/0",
            "PUBLIC_URL": f"http://{host}:{self.port}",
            "TRUSTED_PROXIES": "127.0.0.1",
            "SECRETS_KEYRING": str(folder / "keyring" / "keys"),
            **settings,
        }
        self.servers = [self.further(f"web-{number}") for number in range(count)]
        self.proxy = Proxy(folder / "nginx", self.servers, f"{host}:{self.port}")
        self.agents: list[Agent] = []
        self._nodes = nodes
        self._valkey: subprocess.Popen[bytes] | None = None

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
        self.start_valkey()
        for server in self.servers:
            server.start()
        self.proxy.start()
        eventually(self.hub.answers, 20, "the proxy answers")
        for number in range(self._nodes):
            self.add_agent(f"node-{number}")
        eventually(lambda: len(self.ready_nodes()) == self._nodes, 60, "all nodes are ready")
        return self

    def add_agent(self, name: str, url: str = "") -> None:
        code = (
            f"from clusters.enrolment.node_tokens import enrol_node; print(enrol_node('local', '{name}')[1])"
        )
        token = self.hub.manage("shell", "-c", code).stdout.strip().splitlines()[-1]
        agent = Agent(name, self.folder / name, url or self.proxy.url, token)
        self.agents.append(agent)
        agent.start()

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
        if self._valkey is not None:
            self._valkey.terminate()
            self._valkey.wait(20)

    def start_valkey(self) -> None:
        folder = self.folder / "valkey"
        folder.mkdir()
        self._valkey = subprocess.Popen(
            [
                str(_binary()),
                "--port",
                str(self.valkey_port),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--dir",
                folder,
            ],
            stdout=subprocess.DEVNULL,
            preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
        )


@contextlib.contextmanager
def running(cluster: ServerCluster) -> Iterator[ServerCluster]:
    try:
        yield cluster.start()
    finally:
        cluster.stop()
