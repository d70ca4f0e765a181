"""A Slurm that is asked by its commands, wherever these run."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from clusters.backends.slurm import job_list, submission
from clusters.backends.slurm.client import ControllerSettings
from clusters.backends.slurm.commands import SlurmCommands
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.job_status import JobStatus
from clusters.backends.slurm.nodes import Partition, SlurmNode, read_nodes, read_partition
from clusters.backends.slurm.script import BatchJob, batch_script

_MIN_JOB_AGE = re.compile(r"^MinJobAge\s*=\s*([0-9]+)", re.MULTILINE)
_PRIVATE_DATA = re.compile(r"^PrivateData\s*=\s*(\S+)", re.MULTILINE)
_ACCOUNTING_OFF = "accounting storage is disabled"


@dataclass(frozen=True)
class CommandLineClient:
    commands: SlurmCommands

    @property
    def owner(self) -> str:
        return self.commands.owner

    def submit(self, job: BatchJob) -> int:
        return submission.submit_job(self.commands, batch_script(job))

    def try_submission(self, job: BatchJob) -> bool:
        submission.check_submission(self.commands, batch_script(job))
        return True

    def cancel_jobs(self, job_ids: Collection[int]) -> None:
        submission.cancel_jobs(self.commands, job_ids)

    def jobs_of_controller(self, job_ids: Collection[int]) -> dict[int, JobStatus]:
        return job_list.read_controller_jobs(self.commands, job_ids)

    def jobs_of_accounting(self, job_ids: Collection[int]) -> dict[int, JobStatus]:
        return job_list.read_ended_jobs(self.commands, job_ids)

    def queue_of(self, partition: str) -> list[JobStatus]:
        return job_list.read_queue(self.commands, partition)

    def jobs_named(self, name: str) -> list[int]:
        return job_list.job_ids_by_name(self.commands, name)

    def all_nodes(self) -> list[SlurmNode]:
        return read_nodes(self.commands)

    def partition(self, name: str) -> Partition:
        return read_partition(self.commands, name)

    def partition_names(self) -> list[str]:
        return sorted(set(self.commands.run(["sinfo", "-h", "-o", "%R"]).split()))

    def greeting(self) -> str:
        return f"Slurm's commands answer: {self.commands.run(['sinfo', '--version']).strip()}."

    def has_accounting(self) -> bool:
        try:
            self.commands.run(["sacct", "-n", "-X", "-P", "-j", "1", "-o", "JobIDRaw"])
        except SlurmError as error:
            if error.fault is SlurmFault.REFUSED and _ACCOUNTING_OFF in str(error):
                return False
            raise
        return True

    def controller_settings(self) -> ControllerSettings:
        text = self.commands.run(["scontrol", "show", "config"])
        age, hidden = _MIN_JOB_AGE.search(text), _PRIVATE_DATA.search(text)
        return ControllerSettings(
            int(age[1]) if age else None, frozenset(hidden[1].split(",") if hidden else ())
        )
