"""A hub and a real Slurm for measurements, with jobs that a person submits there by hand."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from clusters.backends.slurm.script import BatchJob, batch_script
from clusters.backends.slurm.submission import submit_job
from tests.harness import guard
from tests.hosts import processes
from tests.node.accounts import ADA
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hub import CLUSTER, NODE_PYTHON, SlurmHub
from tests.slurm.people import ControllerCommands

# For one core and the memory of one of `JOBS` jobs each: as many run at the same time.
NODES, CPUS, MEMORY_MB = 2, 25, 150
JOBS = NODES * CPUS
COMMANDS = ("sbatch", "scancel", "squeue", "sacct", "sinfo", "scontrol")
ACCOUNT = "ada"
PATIENCE_S = 120.0
POLL_S = 0.002
# How often Slurm of the tests looks at its queue.
SLURM_INTERVAL_S = 1.0


class SlurmBench:
    """`cpus`: of each node. `hub_settings`: environment variables of the hub and its own node. `logs`: a
    folder that all nodes share, for the output of jobs by hand."""

    def __init__(self, folder: Path, cpus: int = CPUS, hub_settings: Mapping[str, str] | None = None) -> None:
        self.slurm = SlurmCluster(NODES, cpus=cpus)
        self._folder = folder
        self._hub_settings = hub_settings or {}

    def start(self) -> SlurmBench:
        self.slurm.start()
        self.hub = SlurmHub(self.slurm, self._folder)
        self.logs = self.hub.logs
        self.person = ControllerCommands(self.slurm, ACCOUNT)
        self._calls = self.slurm.folder / "calls"
        self._count_calls()
        self.hub.hub.settings.update(self._hub_settings)
        self.hub.start()
        self.runs = self.hub.hub.own_folder / "runs"
        return self

    def stop(self) -> None:
        try:
            if hasattr(self, "hub"):
                # What runs ends with its machines.
                self.hub.hub.stop()
        finally:
            self.slurm.stop()

    def _count_calls(self) -> None:
        """Puts a wrapper around each command of Slurm that the hub finds."""
        wrappers = self.slurm.folder / "counted"
        wrappers.mkdir()
        self._calls.touch()
        # People's accounts submit and cancel by them, too.
        self._calls.chmod(0o666)
        for name in COMMANDS:
            wrapper = wrappers / name
            command = f'echo {name} >> {self._calls}\nexec {shutil.which(name)} "$@"'
            wrapper.write_text(f"#!/bin/sh\n{command}\n")
            wrapper.chmod(0o755)
        self.hub.hub.settings["PATH"] = f"{wrappers}:{os.environ['PATH']}"

    def calls(self) -> list[str]:
        """Returns the names of the commands that the hub has called so far."""
        return self._calls.read_text().split()

    def submit_by_hand(self, script: Path, nodes: int = 1) -> tuple[int, list[Path]]:
        """Returns the job's number, and the files that get the output of its tasks."""
        output = self.logs / f"by-hand-{time.monotonic_ns()}"
        tasks = f"--nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --output={output}-%t"
        body = f"exec srun {tasks} {NODE_PYTHON} {script}"
        job = BatchJob("by-hand", "main", (body,), nodes=nodes, cpus_per_task=1, time_limit_s=3600)
        return submit_job(self.person, batch_script(job)), [Path(f"{output}-{task}") for task in range(nodes)]

    def submit(self, snapshot: str, nodes: int = 1, **resources: object) -> str:
        """Returns the id of a run of the snapshot's main.py, with one process on each node."""
        spec: dict[str, object] = {
            "source": {"type": "snapshot", "id": snapshot},
            "script": "main.py",
            "experiment": "bench",
            "resources": {"cluster": CLUSTER, **resources},
        }
        if nodes > 1:
            spec["distribution"] = {
                "type": "pytorch",
                "communication_backend": "gloo",
                "process_count": nodes,
                "node_count": nodes,
            }
            spec["resources"] = {"cluster": CLUSTER, "gpus_per_node": 0, **resources}
        return self.hub.runs.submit(spec)

    def log_files(self, run: str, nodes: int = 1) -> list[Path]:
        """Returns the logs of the run's ranks, one on each node, at the hub."""
        names = ["70_driver_log"] if nodes == 1 else [f"70_driver_log_{rank}" for rank in range(nodes)]
        return [self.runs / run / "1" / "logs" / f"{name}.txt" for name in names]

    def is_anything_left(self, others: int = 0) -> bool:
        """Returns whether Slurm has more than so many jobs, or the person a process on its nodes."""
        return any(self._is_on_node(pid) for pid in processes.everyone()) or len(self.hub.jobs()) > others

    def _is_on_node(self, pid: int) -> bool:
        try:
            is_of_person = Path(f"/proc/{pid}").stat().st_uid == ADA
        except OSError:
            return False
        # Other tests on this machine may have the same accounts.
        return is_of_person and processes.space(pid) in self._spaces() and processes.lives(pid)

    def _spaces(self) -> set[str]:
        return {processes.space(machine.init) for machine in self.slurm.nodes.values()}


@contextmanager
def slurm_bench(cpus: int = CPUS, hub_settings: Mapping[str, str] | None = None) -> Iterator[SlurmBench]:
    """One in a folder of its own; its machines end with it."""
    with tempfile.TemporaryDirectory(prefix="th-bench-") as folder:
        guard.own_folder(folder)
        bench = SlurmBench(Path(folder), cpus, hub_settings)
        try:
            yield bench.start()
        finally:
            bench.stop()


def seconds_until(condition: Callable[[], bool], started_at: float, patience_s: float = PATIENCE_S) -> float:
    """Returns the seconds since `started_at`, by the monotonic clock, once the condition is true."""
    while not condition():
        if time.monotonic() - started_at > patience_s:
            raise RuntimeError(f"not within {patience_s:g} s")
        time.sleep(POLL_S)
    return time.monotonic() - started_at


def wait_at_random() -> None:
    """Waits up to one interval of Slurm: rounds of equal length would always meet it at the same moment of
    its interval, one side early and the other late."""
    time.sleep(random.uniform(0, SLURM_INTERVAL_S))


def have_lines(files: list[Path]) -> bool:
    """Returns whether all of the files exist and are not empty."""
    return all(file.exists() and file.stat().st_size for file in files)
