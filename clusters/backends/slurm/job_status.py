"""One job as Slurm reports it, whichever way it is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusters.backends.slurm.states import SlurmState

_GPUS = re.compile(r"(?:^|,)gres/gpu=([0-9]+)")


@dataclass(frozen=True)
class JobStatus:
    """One job as Slurm reports it. Times are seconds since 1970.

    `start_at` is Slurm's estimate while the job waits; `end_at` of a running job is its time limit.
    `restart_count` is None from accounting, which does not know it. `exit_code` and `signal` are None before
    the end, and where slurmrestd does not know them. `canceled_by` is the Unix account, its number or its
    name, where accounting tells it."""

    job_id: int
    state: SlurmState
    reason: str
    nodes: tuple[str, ...]
    gpus: int
    user: str
    partition: str
    submitted_at: int | None
    start_at: int | None
    end_at: int | None
    restart_count: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    canceled_by: int | str | None = None


def count_gpus(resources: str) -> int:
    """Returns how many GPUs there are in `cpu=2,gres/gpu=4,gres/gpu:a100=4`."""
    count = _GPUS.search(resources)
    return int(count[1]) if count else 0
