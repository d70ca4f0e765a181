"""A hub whose cluster `hpc` is a partition of a real Slurm, where the hub's owner is the account ada."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from tests.hosts.bench import HostsHub
from tests.hub import eventually
from tests.journeys.runs import Runs
from tests.node.accounts import with_people
from tests.slurm.cluster import SlurmCluster

CLUSTER = "hpc"
# On a machine that is as busy as tests make it.
PATIENCE_S = 120.0
# The Python of Debian: accounts of people cannot enter the home of root, where the tests' own is.
NODE_PYTHON = "/usr/bin/python3"

WRAPPER = """#!/bin/sh
export TRAINHUB_NODE_PYTHON='{python}'
exec '{node_python}' "$@"
"""


class SlurmHub:
    """`runs` speaks to the hub's API; `logs` is the folder in which each job has its own log."""

    def __init__(self, slurm: SlurmCluster, folder: Path) -> None:
        self.slurm = slurm
        self.logs = slurm.folder / "logs"
        people = folder / "people"
        people.mkdir()
        settings = {
            "SLURM_CONF": str(slurm.layout.conf),
            # From where this hub may get what own environments are made of.
            "PACKAGE_INDEX_HOSTS": "127.0.0.1",
        }
        self.hub = HostsHub(folder / "data", slurm.hub_address, settings)
        self.hub.prefix = tuple(with_people(people))

    def start(self) -> Self:
        self.logs.mkdir(exist_ok=True)
        self.logs.chmod(0o1777)
        self.hub.start()
        self.runs = Runs(self.hub)
        clusters = "/api/v1/clusters/"
        self.send("POST", clusters, {"name": CLUSTER, "kind": "slurm", "slurm": self.partition})
        self.prepare_login()
        self.send("PUT", f"{clusters}{CLUSTER}/unix-accounts/", {"person": "admin", "account": "ada"})
        self.send("POST", f"{clusters}{CLUSTER}/test/", {})
        return self

    @property
    def partition(self) -> dict[str, Any]:
        """The settings of its cluster."""
        return {
            "partition": "main",
            "python": NODE_PYTHON,
            "shared_folder": str(self.logs),
        }

    def prepare_login(self) -> None:
        """What has to be done elsewhere once the cluster is there."""

    def send(self, method: str, path: str, body: dict[str, Any]) -> None:
        """Changes something by the API."""
        answer = self.runs.client.request(method, path, json=body)
        assert answer.is_success, answer.text

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

    def starts(self, run: str, log: str = "70_driver_log.txt") -> None:
        """Waits until its script says that it is here."""
        self.runs.says(run, b"here", log, seconds=PATIENCE_S)

    def ended(self, run: str) -> dict[str, Any]:
        return self.runs.ended(run, PATIENCE_S)

    def completes(self, run: str) -> None:
        ended = self.ended(run)
        assert ended["state"] == "Completed", ended["sentence"]

    def jobs(self) -> list[str]:
        """The numbers of all jobs of the hub's partitions that Slurm has not ended."""
        return self.slurm.admin("squeue", "-h", "-p", "main,spare", "-o", "%A").split()

    def job(self, run: str) -> str:
        """The number of the run's job."""
        return str(self.evaluate(f"Allocation.objects.filter(holder={run!r}).latest('pk').job_id"))

    def state(self, job: str) -> str:
        """What Slurm calls the job's state."""
        return self.slurm.admin("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()

    def nodes_of(self, run: str) -> list[str]:
        """The nodes of the run's job, as Slurm names them."""
        (names,) = self.slurm.admin("squeue", "-h", "-j", self.job(run), "-o", "%N").split()
        return self.slurm.admin("scontrol", "show", "hostnames", names).split()

    def change(self, **settings: str) -> None:
        """Changes the partition's settings, as its page would."""
        self.evaluate(f"SlurmPartition.objects.update(**{settings!r})")

    def restore_python(self) -> None:
        self.change(python=NODE_PYTHON)

    def use_interpreter(self, python: str) -> None:
        """Lets runs in the environment `system` have this interpreter, as docs/slurm.md tells operators."""
        prefix = Path(python).parent.parent
        self.slurm.let_people_read(prefix, base_prefix(prefix))
        wrapper = self.slurm.folder / "node-python"
        wrapper.write_text(WRAPPER.format(python=python, node_python=NODE_PYTHON))
        wrapper.chmod(0o755)
        self.change(python=str(wrapper))

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


def base_prefix(prefix: Path) -> Path:
    """Where the interpreter of a virtual environment is installed."""
    return (prefix / "bin" / "python").resolve().parent.parent
