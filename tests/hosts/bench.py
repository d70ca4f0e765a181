"""Several hosts for tests: machines as network namespaces, joined to a hub in the tests' own namespace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from simulator import Scenario, environment
from tests.caching import CACHE
from tests.hosts.machine import Machine
from tests.hosts.wiring import Bridge
from tests.hub import PROJECT, Hub, eventually, free_port
from tests.journeys.runs import Runs

CLUSTER = "gang"
TRAINHUB_NODE = (sys.executable, "-m", "trainhub_node")
NOTHING: Mapping[str, str] = MappingProxyType({})


class Host(Machine):
    """A machine with a node agent, a node of the cluster `gang`. `node`: the agent's folder as seen from
    outside."""

    world: Scenario | None = None
    # All hosts have one cache, so that each environment is built once. See `boot` for data.
    cache = str(CACHE / "node")

    def boot(self) -> None:
        super().boot()
        # Machines with one folder of data would each take the other's use of it for a restart of their own.
        data = f"{self.cache}/data"
        self.run("sh", "-ec", f"mkdir -p {data} /tmp/own-data && mount --bind /tmp/own-data {data}")

    def show(self, world: Scenario) -> None:
        """What its GPUs tell from now on."""
        self.world = world
        world.write(self.folder / "scenario")

    @property
    def node(self) -> Path:
        return self.folder / "node"

    @property
    def agent_log(self) -> Path:
        return self.folder / "agent.log"

    def join(self, hub: HostsHub, python: str) -> None:
        """By the command that a person would run on it."""
        self.settings = {
            "TRAINHUB_NODE_CACHE": self.cache,
            "TRAINHUB_NODE_CONTAINERS": "off",
            "TRAINHUB_NODE_PYTHON": python,
            "PYTHONPATH": str(PROJECT),
        }
        self.agent("join", hub.url, "--token", hub.join_token(self.name))

    def agent(self, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(*TRAINHUB_NODE, verb, *arguments, "--dir", "/tmp/node", env=self.settings)

    def start_agent(self) -> None:
        snapshot = environment(Path("/tmp/scenario")) if self.world else {}
        self.spawn(self.agent_log, *TRAINHUB_NODE, "run", "--dir", "/tmp/node", **self.settings, **snapshot)

    def kill_agent(self) -> None:
        os.kill(self.agent_pid(), 9)

    def agent_pid(self) -> int:
        return self.pid_of("-m trainhub_node run")


class HostsHub(Hub):
    """Open to other machines, which reach it at `address`."""

    def __init__(self, data_dir: Path, address: str, settings: Mapping[str, str]) -> None:
        super().__init__(data_dir, OPEN="1", **settings)
        self.url = self.browser_url = f"https://{address}:{self.port}"
        self.settings |= {"BIND": f"{address}:{self.port}", "BROKER_BIND": f"{address}:{free_port()}"}

    def join_token(self, name: str) -> str:
        return self.manage("node", "token", name, "--cluster", CLUSTER).stdout.split()[0]


class Hosts:
    """`start` builds and joins all; `hosts[0]` is the head of runs that take all of them. `runs` speaks to
    the hub's API.

    `python`: the interpreter of runs in the environment `system`. `worlds`: the simulated GPUs of each host,
    in order."""

    host_type = Host

    def __init__(
        self,
        folder: Path,
        python: str,
        machines: int = 2,
        settings: Mapping[str, str] = NOTHING,
        worlds: Sequence[Scenario] = (),
    ) -> None:
        self.bridge = Bridge(machines)
        self.hub = HostsHub(folder / "data", self.bridge.hub_address, settings)
        self._python = python
        self._worlds = worlds
        pythons = [Path(python).parent.parent, Path(sys.prefix), Path(sys.base_prefix)]
        visible = [PROJECT, CACHE, *pythons, Path(sys.executable).resolve().parent.parent]
        self.hosts = [
            self.host_type(self.bridge, number, folder / f"host{number}", visible)
            for number in self.bridge.machines
        ]

    def start(self) -> Hosts:
        self.start_hub()
        self.start_hosts()
        return self

    def start_hub(self) -> None:
        self.bridge.build()
        self.hub.start()
        self.runs = Runs(self.hub)

    def start_hosts(self) -> None:
        for place, host in enumerate(self.hosts):
            host.boot()
            if place < len(self._worlds):
                host.show(self._worlds[place])
            host.join(self.hub, self._python)
            host.start_agent()
        for host in self.hosts:
            self.until(host, "ready")

    def stop(self) -> None:
        try:
            if self.hub.process is not None and self.hub.answers():
                self.hub.cancel_all()
        finally:
            for host in self.hosts:
                host.stop()
            self.stop_hub()
            self.bridge.remove()

    def stop_hub(self) -> None:
        self.hub.stop()

    def status(self, host: Host) -> str:
        answer = self.runs.client.get(f"/api/v1/nodes/{host.name}/")
        return str(answer.json().get("status", ""))

    def until(self, host: Host, *states: str, seconds: float = 40) -> str:
        eventually(lambda: self.status(host) in states, seconds, f"{host.name} is {states}")
        return self.status(host)

    def submit(self, spec: dict[str, object]) -> str:
        """Submit to the cluster of the hosts."""
        return self.runs.submit({"resources": {"cluster": CLUSTER}, **spec})

    def file_on_host(self, run: str, name: str) -> Path:
        """A rank's own log, where its host wrote it."""
        result = [path for host in self.hosts for path in host.node.glob(f"attempts/{run}-*/logs/{name}")]
        assert len(result) == 1, result
        return result[0]

    def page_of(self, number: int) -> str:
        """The run's page as the owner sees it."""
        with self.hub.client("") as browser:
            token = browser.get("/sign-in/").cookies[self.hub.cookie("csrftoken")]
            data = {"username": "admin", "password": self.hub.password, "csrfmiddlewaretoken": token}
            browser.post("/sign-in/", data=data, headers={"Referer": self.hub.url})
            return browser.get(f"/runs/{number}/logs/").text

    def script(self, text: str, **spec: object) -> str:
        resources = {"cluster": CLUSTER, **dict(spec.pop("resources", {}))}  # type: ignore[call-overload]
        return self.runs.script(text, resources=resources, **spec)
