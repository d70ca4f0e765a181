"""A hub whose cluster `hpc` is a partition of a real Slurm, where the hub's owner is the account ada."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Self

from tests.hosts.bench import HostsHub
from tests.hub import eventually
from tests.journeys.runs import Runs
from tests.node.accounts import with_people
from tests.node.link.installed import PIP, build
from tests.slurm.cluster import SlurmCluster

CLUSTER = "hpc"
# On a machine that is as busy as tests make it.
PATIENCE_S = 120.0
# The Python of Debian: accounts of people cannot enter the home of root, where the tests' own is.
NODE_PYTHON = "/usr/bin/python3"


class SlurmHub:
    """`runs` speaks to the hub's API; `logs` is the folder in which each job has its own log."""

    def __init__(self, slurm: SlurmCluster, folder: Path) -> None:
        self.slurm = slurm
        self.logs = slurm.folder / "logs"
        self._python = slurm.folder / "python"
        people = folder / "people"
        people.mkdir()
        self.hub = HostsHub(folder / "data", slurm.hub_address, {"SLURM_CONF": str(slurm.layout.conf)})
        self.hub.prefix = tuple(with_people(people))

    def start(self) -> Self:
        self.logs.mkdir(exist_ok=True)
        self.logs.chmod(0o1777)
        if not self._python.exists():
            self._install_node_program()
        self.hub.start()
        self.runs = Runs(self.hub)
        clusters = "/api/v1/clusters/"
        self._send("POST", clusters, {"name": CLUSTER, "kind": "slurm", "slurm": self.partition})
        self.prepare_login()
        self._send("PUT", f"{clusters}{CLUSTER}/unix-accounts/", {"person": "admin", "account": "ada"})
        self._send("POST", f"{clusters}{CLUSTER}/test/", {})
        return self

    @property
    def partition(self) -> dict[str, Any]:
        """The settings of its cluster."""
        return {
            "partition": "main",
            "python": str(self._python / "bin" / "python"),
            "shared_folder": str(self.logs),
        }

    def prepare_login(self) -> None:
        """What has to be done elsewhere once the cluster is there."""

    def _send(self, method: str, path: str, body: dict[str, Any]) -> None:
        answer = self.runs.client.request(method, path, json=body)
        assert answer.is_success, answer.text

    def _install_node_program(self) -> None:
        """As an operator would, in a folder that every account may read."""
        subprocess.run([NODE_PYTHON, "-m", "venv", "--without-pip", self._python], check=True, timeout=120)
        wheel = build(self.slurm.folder / "wheel")
        subprocess.run(
            [*PIP[:3], "--python", self._python / "bin" / "python", *PIP[3:], "install", wheel],
            check=True,
            timeout=600,
        )

    def stop(self) -> None:
        try:
            if self.hub.process is not None and self.hub.answers():
                self.clear()
        finally:
            self.hub.stop()

    def clear(self) -> None:
        """Ends all runs, and waits until Slurm has no job of them."""
        self.hub.cancel_all()
        eventually(lambda: not self.jobs(), PATIENCE_S, "no job is left")

    def script(self, text: str, *, nodes: int = 1, processes: int = 0, **spec: Any) -> str:
        """Submits a script; with `processes` as PyTorch, so many on all nodes together."""
        resources = {"cluster": CLUSTER, **spec.pop("resources", {})}
        if processes:
            spec["distribution"] = {
                "type": "pytorch",
                "communication_backend": "gloo",
                "process_count": processes,
                "node_count": nodes,
            }
        return self.runs.script(text, resources=resources, **spec)

    def starts(self, run: str) -> None:
        """Waits until its script says that it is here."""
        self.runs.says(run, b"here", seconds=PATIENCE_S)

    def ended(self, run: str) -> dict[str, Any]:
        return self.runs.ended(run, PATIENCE_S)

    def completes(self, run: str) -> None:
        ended = self.ended(run)
        assert ended["state"] == "Completed", ended["sentence"]

    def jobs(self) -> list[str]:
        """The numbers of all jobs of the cluster's partition that Slurm has not ended."""
        return self.slurm.admin("squeue", "-h", "-p", "main", "-o", "%A").split()

    def job(self, run: str) -> str:
        """The number of the run's job."""
        return str(self.evaluate(f"Allocation.objects.filter(holder={run!r}).latest('pk').job_id"))

    def change(self, **settings: str) -> None:
        """Changes the partition's settings, as its page would."""
        self.evaluate(f"SlurmPartition.objects.update(**{settings!r})")

    def restore_python(self) -> None:
        self.change(python=str(self._python / "bin" / "python"))

    def trouble(self) -> str:
        """Why the hub's last call of Slurm failed, "" if it did not."""
        return str(self.evaluate("SlurmPartition.objects.get().trouble"))

    def evaluate(self, expression: str, preparation: str = "") -> Any:
        """The value of an expression on the hub, as JSON."""
        code = f"{preparation}\nimport json\nfrom clusters.models import *\nprint(json.dumps({expression}))"
        return json.loads(self.hub.manage("shell", "-c", code).stdout.splitlines()[-1])

    def waits(self, run: str, text: str, seconds: float = PATIENCE_S) -> str:
        """Waits until the run's sentence contains the text."""

        def sentence() -> str:
            found = str(self.runs.detail(run).get("sentence", ""))
            return found if text in found else ""

        return eventually(sentence, seconds, f"run {run} says {text}")
