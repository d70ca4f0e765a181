"""A Slurm that is asked over HTTP: slurmrestd, with a token of each account."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from clusters.backends.slurm.commands import ROOT
from clusters.backends.slurm.errors import SlurmError, SlurmFault, one_line
from clusters.backends.slurm.job_status import JobStatus
from clusters.backends.slurm.nodes import Partition, SlurmNode
from clusters.backends.slurm.rest import answers
from clusters.backends.slurm.rest.http_calls import (
    INVALID_JOB,
    INVALID_PARTITION,
    NOTHING_FOUND,
    VERSION,
    RestCalls,
    RestProblem,
)
from clusters.backends.slurm.script import BatchJob, batch_script, gres_of, minutes_of
from clusters.backends.slurm.states import JobPhase
from clusters.backends.slurm.submission import SUBMIT_TIMEOUT_S

SLURM, ACCOUNTING = f"/slurm/{VERSION}", f"/slurmdb/{VERSION}"
# sbatch would take that of whoever calls it.
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MAX_IDS_PER_CALL = 100
ACTIVE = frozenset(
    {JobPhase.WAITING, JobPhase.STARTING, JobPhase.RUNNING, JobPhase.SUSPENDED, JobPhase.ENDING}
)
_PATH = re.compile(r"/slurm(?:db)?/(v[0-9.]+)/")
T = TypeVar("T")


@dataclass(frozen=True)
class RestClient:
    """As a SlurmClient. Nothing else than VERSION is spoken."""

    calls: RestCalls

    @property
    def owner(self) -> str:
        return self.calls.account

    def submit(self, job: BatchJob) -> int:
        if self.owner == ROOT:
            raise SlurmError(
                SlurmFault.NO_ACCOUNT, "A job must not belong to root. Map the person to a plain account."
            )
        body = {"script": batch_script(job), "job": job_properties(job)}
        try:
            answer = self.calls.send("POST", f"{SLURM}/job/submit", body=body, timeout_s=SUBMIT_TIMEOUT_S)
        except RestProblem as problem:
            # A job that cannot start now is queued nevertheless, as sbatch says without a word.
            if not problem.content.get("job_id"):
                raise
            answer = problem.content
        number = answer.get("job_id")
        if not isinstance(number, int) or number <= 0:
            raise _unreadable("job/submit", f"job_id is {number!r}")
        return number

    def try_submission(self, job: BatchJob) -> bool:  # noqa: ARG002 - slurmrestd has no such call
        return False

    def cancel_jobs(self, job_ids: Collection[int]) -> None:
        for job_id in sorted(job_ids):
            try:
                self.calls.send("DELETE", f"{SLURM}/job/{job_id:d}")
            except RestProblem as problem:
                if problem.number != INVALID_JOB:
                    raise

    def jobs_of_controller(self, job_ids: Collection[int]) -> dict[int, JobStatus]:
        if not job_ids:
            return {}
        # It tells of one job or of all.
        wanted = set(job_ids)
        path = f"job/{next(iter(wanted)):d}" if len(wanted) == 1 else "jobs"
        try:
            jobs = self._list(f"{SLURM}/{path}", "jobs", answers.job_of_controller)
        except RestProblem as problem:
            if problem.number == INVALID_JOB:
                return {}
            raise
        return {job.job_id: job for job in jobs if job.job_id in wanted}

    def jobs_of_accounting(self, job_ids: Collection[int]) -> dict[int, JobStatus]:
        ordered = sorted(job_ids)
        jobs: dict[int, JobStatus] = {}
        # Never without a number, which would mean the jobs of everybody.
        for start in range(0, len(ordered), MAX_IDS_PER_CALL):
            numbers = "%2C".join(f"{job_id:d}" for job_id in ordered[start : start + MAX_IDS_PER_CALL])
            path = f"{ACCOUNTING}/jobs?skip_steps=true&step={numbers}"
            ended = self._list(path, "jobs", answers.job_of_accounting)
            jobs |= {job.job_id: job for job in ended if job.state.is_final}
        return jobs

    def queue_of(self, partition: str) -> list[JobStatus]:
        jobs = self._list(f"{SLURM}/jobs", "jobs", answers.job_of_controller)
        return [job for job in jobs if partition in job.partition.split(",") and job.state.phase in ACTIVE]

    def jobs_named(self, name: str) -> list[int]:
        items = self._items(f"{SLURM}/jobs", "jobs")
        return self._read("jobs", lambda: sorted(int(job["job_id"]) for job in items if job["name"] == name))

    def all_nodes(self) -> list[SlurmNode]:
        return self._list(f"{SLURM}/nodes", "nodes", answers.node_of)

    def partition(self, name: str) -> Partition:
        partitions = self._list(f"{SLURM}/partitions", "partitions", answers.partition_of)
        chosen = next((partition for partition in partitions if partition.name == name), None)
        if chosen is None:
            raise RestProblem(SlurmFault.REFUSED, f"Slurm knows no partition {name}.", INVALID_PARTITION)
        return chosen

    def partition_names(self) -> list[str]:
        partitions = self._list(f"{SLURM}/partitions", "partitions", answers.partition_of)
        return sorted(partition.name for partition in partitions)

    def greeting(self) -> str:
        self._check_versions()
        answer = self.calls.send("GET", f"{SLURM}/ping")
        release = self._read("ping", lambda: str(answer["meta"]["Slurm"]["release"]))
        return f"slurmrestd of Slurm {one_line(release)} answers, and speaks {VERSION}."

    def has_accounting(self) -> bool:
        try:
            self._items(f"{ACCOUNTING}/job/1", "jobs")
        except SlurmError as error:
            if error.fault is SlurmFault.VERSION:
                return False  # slurmrestd was started without it
            raise
        return True

    def controller_settings(self) -> None:
        return None

    def _check_versions(self) -> None:
        """Raises SlurmError if this slurmrestd does not speak the one version that is known here."""
        document = self.calls.send("GET", "/openapi")
        paths = self._read("openapi", lambda: list(map(str, document["paths"])))
        versions = {match[1] for match in map(_PATH.match, paths) if match}
        if VERSION not in versions:
            raise SlurmError(
                SlurmFault.VERSION,
                f"This slurmrestd speaks {', '.join(sorted(versions)) or 'no version of Slurm'}; TrainHub "
                f"knows {VERSION} alone. Start it with that plugin, if it has it, or use a login node.",
            )

    def _list(self, path: str, name: str, parse: Callable[[Mapping[str, Any]], T]) -> list[T]:
        items = self._items(path, name)
        return self._read(name, lambda: [parse(item) for item in items])

    def _items(self, path: str, name: str) -> Iterable[Mapping[str, Any]]:
        try:
            answer = self.calls.send("GET", path)
        except RestProblem as problem:
            if problem.number == NOTHING_FOUND:
                return []
            raise
        return self._read(name, lambda: [*answer[name]])

    def _read(self, what: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _unreadable(what, repr(error)) from error


def job_properties(job: BatchJob) -> dict[str, Any]:
    """Returns what sbatch would read from the script: slurmrestd does not look into it."""
    if job.warning is not None and job.warning.is_for_script:
        raise ValueError("slurmrestd takes no signal for the script alone")
    optional = {
        "account": job.account,
        "qos": job.qos,
        "cpus_per_task": job.cpus_per_task,
        "gres": gres_of(job),
        "memory_per_node": job.memory_mb,
        "time_limit": minutes_of(job),
        "signal": f"{job.warning.name}@{job.warning.seconds:d}" if job.warning else "",
    }
    return {
        "name": job.name,
        "partition": job.partition,
        "nodes": job.nodes,
        "tasks": job.nodes * job.tasks_per_node,
        "tasks_per_node": job.tasks_per_node,
        **{name: value for name, value in optional.items() if value},
        # It takes any value of `requeue` for a yes, and says nothing of this name in its document.
        "requeue" if job.can_requeue else "no_requeue": True,
        "current_working_directory": job.folder,
        "standard_output": job.output,
        "environment": {"PATH": DEFAULT_PATH},
    }


def _unreadable(what: str, detail: str) -> SlurmError:
    return SlurmError(
        SlurmFault.UNREADABLE,
        f"TrainHub cannot read what slurmrestd says about {what}: {one_line(detail)[:200]}. Report it with "
        "Slurm's version.",
    )
