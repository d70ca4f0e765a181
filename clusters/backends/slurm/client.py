"""What the hub asks of a Slurm, and the answers as values: by Slurm's commands (`command_line`) or by
slurmrestd (`rest.rest_client`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.job_status import JobStatus
from clusters.backends.slurm.nodes import Partition, SlurmNode
from clusters.backends.slurm.script import BatchJob
from clusters.backends.slurm.states import JobPhase


@dataclass(frozen=True)
class ControllerSettings:
    """What slurm.conf says: for how many seconds the controller remembers ended jobs, and what it hides from
    others than its operators (`jobs`, `nodes`, `usage`)."""

    min_job_age_s: int | None
    private_data: frozenset[str]


class SlurmClient(Protocol):
    """A Slurm as one account. Every method raises SlurmError."""

    @property
    def owner(self) -> str:
        """The account that asks, and whose are the jobs that it submits."""

    def submit(self, job: BatchJob) -> int:
        """Returns the number of the job.

        After the faults TIMEOUT, UNREACHABLE, CONTROLLER_AWAY and UNREADABLE the job may be queued
        nevertheless: look for its name before another try."""

    def try_submission(self, job: BatchJob) -> bool:
        """Raises SlurmError if Slurm would refuse the job; queues nothing. Returns False if this Slurm cannot
        be asked that."""

    def cancel_jobs(self, job_ids: Collection[int]) -> None:
        """Jobs that have ended or that Slurm has forgotten are no error."""

    def jobs_of_controller(self, job_ids: Collection[int]) -> dict[int, JobStatus]:
        """Returns those that the controller knows, also ended ones."""

    def jobs_of_accounting(self, job_ids: Collection[int]) -> dict[int, JobStatus]:
        """Returns those of whose end accounting has heard."""

    def queue_of(self, partition: str) -> list[JobStatus]:
        """Returns all waiting and running jobs, those of others too."""

    def jobs_named(self, name: str) -> list[int]:
        """Returns the jobs with exactly this name: what a submission without an answer has queued."""

    def all_nodes(self) -> list[SlurmNode]: ...

    def partition(self, name: str) -> Partition:
        """The fault is REFUSED if there is no such partition."""

    def partition_names(self) -> list[str]: ...

    def greeting(self) -> str:
        """Returns a sentence that says what answers, and in which version."""

    def has_accounting(self) -> bool: ...

    def controller_settings(self) -> ControllerSettings | None:
        """Returns None if this way of asking does not tell them."""


def read_jobs(client: SlurmClient, job_ids: Collection[int], *, has_accounting: bool) -> dict[int, JobStatus]:
    """Returns the jobs among `job_ids` that Slurm's controller knows and, with accounting, the ended ones
    that it has forgotten. Raises SlurmError if the controller does not answer: then nothing is known of any.

    Accounting may hear of an end some seconds late or be away. A missing job is lost only if
    `jobs_of_accounting` has answered for minutes without it: a controller that crashed forgets what it
    accepted in its last seconds."""
    jobs = client.jobs_of_controller(job_ids) if job_ids else {}
    if has_accounting:
        # The controller does not say who canceled a job.
        open_ids = [
            job_id
            for job_id in job_ids
            if job_id not in jobs or jobs[job_id].state.phase is JobPhase.CANCELED
        ]
        try:
            jobs |= client.jobs_of_accounting(open_ids) if open_ids else {}
        except SlurmError as error:
            if error.fault is SlurmFault.UNREADABLE:
                raise
    return jobs
