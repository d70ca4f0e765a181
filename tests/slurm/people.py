"""People with accounts on the machines of a Slurm, who submit jobs there and wait for their states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clusters.backends.slurm.client import SlurmClient, read_jobs
from clusters.backends.slurm.command_line import CommandLineClient
from clusters.backends.slurm.commands import CALL_TIMEOUT_S, LocalCommands
from clusters.backends.slurm.job_status import JobStatus
from clusters.backends.slurm.script import BatchJob
from tests.hub import eventually
from tests.slurm.cluster import SlurmCluster

# Slurm schedules once a second, and a busy machine is slow.
STATE_S = 120.0
ENDED_S = 150.0
PLAIN = BatchJob("test", "main", ("sleep 600",), memory_mb=50)


class ControllerCommands:
    """The commands as LocalCommands runs them, on the controller's machine, where people have accounts."""

    def __init__(self, cluster: SlurmCluster, account: str = "root", conf: Path | None = None) -> None:
        self.owner = account
        # The numbers of accounts mean the same everywhere; their names are those of that machine.
        switch = (
            []
            if account == "root"
            else ["setpriv", f"--reuid={account}", f"--regid={account}", "--init-groups"]
        )
        environment = ["env", f"SLURM_CONF={conf or cluster.layout.conf}", *switch]
        self._prefix = cluster.controller.inside(*environment)

    def run(self, argv: Sequence[str], stdin: str = "", timeout_s: float = CALL_TIMEOUT_S) -> str:
        return LocalCommands().run([*self._prefix, *argv], stdin, timeout_s)


class Person:
    """`client`: how the person asks Slurm; without one, by commands, which `commands` has in any case."""

    def __init__(self, cluster: SlurmCluster, account: str, client: SlurmClient | None = None) -> None:
        self.commands = ControllerCommands(cluster, account)
        self.client = client or CommandLineClient(self.commands)
        self.cluster = cluster
        self.jobs: list[int] = []

    def submit(self, *body: str, **changes: object) -> int:
        job = replace(PLAIN, **changes)  # type: ignore[arg-type]
        self.jobs.append(self.client.submit(replace(job, body=body or job.body)))
        return self.jobs[-1]

    def status(self, job_id: int) -> JobStatus:
        return read_jobs(self.client, [job_id], has_accounting=self.cluster.layout.has_accounting)[job_id]

    def until(self, job_id: int, word: str, reason: str = "") -> JobStatus:
        """The status once it has this state and reason."""
        last: list[JobStatus] = []

        def reached() -> JobStatus | None:
            last[:] = [self.status(job_id)]
            state = last[0].state
            if state.word == word and last[0].reason.startswith(reason):
                return last[0]
            assert not state.is_final, f"job {job_id} has ended"
            return None

        try:
            return eventually(reached, STATE_S, f"job {job_id} is {word} {reason}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {last}") from None

    def until_ended(self, job_id: int) -> JobStatus:
        def ended() -> JobStatus | None:
            status = self.status(job_id)
            return status if status.state.is_final else None

        return eventually(ended, ENDED_S, f"job {job_id} ends")

    def leave(self) -> None:
        if self.jobs:
            self.cluster.admin("scancel", *map(str, self.jobs))
