"""A job as a script for sbatch, which a person can read, store and submit by hand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from clusters.backends.slurm.settings import FOLDER, GRES, NAME

MAX_NAME_LENGTH = 128
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGNAL = re.compile(r"[A-Z][A-Z0-9]{1,9}")
_OUTPUT = re.compile(r"/[A-Za-z0-9_./%+-]{0,254}")


@dataclass(frozen=True)
class WarningSignal:
    """Sent `seconds` before the time limit (Slurm may be a minute early), to the processes that srun started;
    with `is_for_script`, to the shell of the script alone."""

    name: str
    seconds: int
    is_for_script: bool = False


@dataclass(frozen=True)
class BatchJob:
    """`gres` is Slurm's name of the GPUs (`gpu`, `gpu:a100`). Memory is per node. Empty values and zeros are
    left to Slurm's defaults. `body` are lines of shell; the caller quotes what it puts there."""

    name: str
    partition: str
    body: tuple[str, ...]
    nodes: int = 1
    tasks_per_node: int = 1
    cpus_per_task: int = 0
    gpus_per_node: int = 0
    gres: str = "gpu"
    memory_mb: int = 0
    time_limit_s: int = 0
    warning: WarningSignal | None = None
    can_requeue: bool = False
    account: str = ""
    qos: str = ""
    # Exist on every node, also where there is no shared folder.
    folder: str = "/tmp"  # noqa: S108
    output: str = "/dev/null"
    environment: Mapping[str, str] = field(default_factory=dict)


def batch_script(job: BatchJob) -> str:
    """Returns the script. Raises ValueError for a value that could be read as something else: names of
    Slurm's things come from checked settings, so only the job's name may be any text."""
    lines = ["#!/bin/sh", *(f"#SBATCH --{option}" for option in _options(job)), ""]
    for name, value in job.environment.items():
        _check(_VARIABLE, name, "variable")
        if "\0" in value:
            raise ValueError(f"the value of {name} contains a null character")
        lines.append(f"export {name}={shlex.quote(value)}")
    return "\n".join([*lines, *job.body]) + "\n"


def gres_of(job: BatchJob) -> str:
    """Returns the GPUs of a node as Slurm calls them, such as `gpu:a100:2`; "" without any."""
    return f"{_check(GRES, job.gres, 'gres')}:{job.gpus_per_node:d}" if job.gpus_per_node else ""


def minutes_of(job: BatchJob) -> int:
    """Returns the time limit as Slurm counts it, 0 without one."""
    return -(-job.time_limit_s // 60)


def _options(job: BatchJob) -> Iterator[str]:
    yield f"job-name={_quoted(job.name)}"
    yield f"partition={_check(NAME, job.partition, 'partition')}"
    if job.account:
        yield f"account={_check(NAME, job.account, 'account')}"
    if job.qos:
        yield f"qos={_check(NAME, job.qos, 'qos')}"
    yield f"nodes={job.nodes:d}"
    yield f"ntasks-per-node={job.tasks_per_node:d}"
    if job.cpus_per_task:
        yield f"cpus-per-task={job.cpus_per_task:d}"
    if job.gpus_per_node:
        yield f"gres={gres_of(job)}"
    if job.memory_mb:
        yield f"mem={job.memory_mb:d}M"
    if job.time_limit_s:
        yield f"time={minutes_of(job):d}"
    if job.warning is not None:
        shell = "B:" if job.warning.is_for_script else ""
        yield f"signal={shell}{_check(_SIGNAL, job.warning.name, 'signal')}@{job.warning.seconds:d}"
    yield "requeue" if job.can_requeue else "no-requeue"
    yield f"chdir={_check(FOLDER, job.folder, 'folder')}"
    yield f"output={_check(_OUTPUT, job.output, 'output')}"


def _quoted(name: str) -> str:
    """The name as sbatch reads it from a script: it knows quotes and backslashes, but expands nothing."""
    line = "".join(char if char.isprintable() else " " for char in name)[:MAX_NAME_LENGTH].strip()
    escaped = line.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped or "trainhub"}"'


def _check(pattern: re.Pattern[str], value: str, what: str) -> str:
    if not pattern.fullmatch(value):
        raise ValueError(f"{value!r} cannot be a {what}")
    return value
