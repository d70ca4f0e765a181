"""Hosts whose agents are older than the hub, started by what starts them again when they end, as systemd
does."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from tests.hosts.bench import Host, HostsHub
from tests.hub import eventually
from tests.upgrade.agents.older_agent import OLDER, install_older

# As in a virtual environment that somebody made for the agent: the packages on the path, nothing of the hub.
INSTALLED = Path("/tmp/installed")
STEP_S = 2.0
KEEP = 'while true; do "$@"; sleep 1; done'


class UpgradeHost(Host):
    version = OLDER

    def join(self, hub: HostsHub, python: str) -> None:
        install_older(self.folder / "installed", self.version)
        self.settings = {
            "TRAINHUB_NODE_CACHE": self.cache,
            "TRAINHUB_NODE_CONTAINERS": "off",
            "TRAINHUB_NODE_PYTHON": python,
            "PYTHONPATH": str(INSTALLED),
            # Of the tests: Celery would load Django's settings, which a node has not.
            "DJANGO_SETTINGS_MODULE": "",
        }
        self.agent("join", hub.url, "--token", hub.join_token(self.name))

    def start_agent(self) -> None:
        command = (sys.executable, "-m", "trainhub_node", "run", "--dir", "/tmp/node")
        self.spawn(self.agent_log, "sh", "-c", KEEP, "sh", *command, **self.settings)

    def agent_pids(self) -> list[int]:
        """All processes of agents, the launcher first."""
        words = shlex.join(("-m", "trainhub_node", "run"))
        return sorted(pid for pid in self.pids() if words in _command(pid) and "sh -c" not in _command(pid))

    def kill_agents(self) -> None:
        for pid in self.agent_pids():
            os.kill(pid, 9)

    def linger_at_steps(self) -> None:
        """Has the agent stay for `STEP_S` at each step of an upgrade, and starts it again: steps that pass in
        milliseconds would be missed by who looks."""
        requests = self.folder / "installed/trainhub_node/upgrade/upgrade_requests.py"
        asks = 'self._hub.request("POST", ADDRESS, json=body)\n'
        text = requests.read_text()
        assert asks in text
        requests.write_text(text.replace(asks, f"{asks}        __import__('time').sleep({STEP_S})\n"))
        self.kill_agents()

    def wait_for_one_process(self) -> None:
        """Waits until there is an agent, and no launcher above it."""
        eventually(lambda: len(self.agent_pids()) == 1, 30, f"{self.name} has one agent")

    def wait_for_log(self, text: str, seconds: float = 60) -> None:
        eventually(lambda: text in self.agent_log.read_text(), seconds, f"{text!r} in {self.agent_log}")

    def programs(self) -> list[str]:
        return sorted(path.name for path in (self.node / "programs").iterdir() if path.is_dir())


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
