"""Jobs into Slurm's queue, and out of it."""

from __future__ import annotations

from collections.abc import Collection

from clusters.backends.slurm.commands import ROOT, SlurmCommands
from clusters.backends.slurm.errors import SlurmError, SlurmFault, one_line

SUBMIT_TIMEOUT_S = 60.0


def submit_job(commands: SlurmCommands, script: str) -> int:
    """Returns the number of the job, which belongs to `commands.owner`. Raises SlurmError.

    After the faults TIMEOUT, UNREACHABLE, CONTROLLER_AWAY and UNREADABLE the job may be queued nevertheless:
    look for its name (`job_list.job_ids_by_name`) before another try."""
    _refuse_root(commands)
    answer = commands.run(["sbatch", "--parsable"], script, SUBMIT_TIMEOUT_S)
    # `id` or `id;cluster`.
    number = answer.strip().partition(";")[0]
    if not number.isdecimal():
        raise SlurmError(
            SlurmFault.UNREADABLE, f"sbatch answered {one_line(answer)!r} instead of a job's number."
        )
    return int(number)


def check_submission(commands: SlurmCommands, script: str) -> None:
    """Raises SlurmError if Slurm would refuse the script; queues nothing."""
    _refuse_root(commands)
    commands.run(["sbatch", "--test-only"], script, SUBMIT_TIMEOUT_S)


def cancel_jobs(commands: SlurmCommands, job_ids: Collection[int]) -> None:
    """Cancel the jobs; those that have ended or that Slurm has forgotten are no error. Raises SlurmError."""
    if job_ids:
        commands.run(["scancel", *map(str, sorted(job_ids))])


def _refuse_root(commands: SlurmCommands) -> None:
    if commands.owner == ROOT:
        raise SlurmError(
            SlurmFault.NO_ACCOUNT, "A job must not belong to root. Map the person to a plain account."
        )
