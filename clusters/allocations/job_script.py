"""The job of an allocation: its script starts the node program on each of its nodes, for one run."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path

from clusters.backends.contract import Request
from clusters.backends.slurm import node_start
from clusters.backends.slurm.script import BatchJob, WarningSignal
from clusters.backends.slurm.settings import SlurmSettings

CLAIM, FINGERPRINT, GRACE = "TRAINHUB_CLAIM", "TRAINHUB_HUB_FINGERPRINT", "TRAINHUB_GRACE_S"
CACHE = "TRAINHUB_JOB_CACHE"
# Slurm may be as much late with what it does at a limit, and the node reports the end in this time.
END_ALLOWANCE_S = 60
MB = 1024**2
_END = "END_OF_PROGRAM"


@dataclass(frozen=True)
class NodeProgram:
    """How the nodes run the node program: with which interpreter of theirs, for the hub at which URL, and
    with which claim code. `fingerprint`: of the hub's own authority, "" if they trust it anyway. `archive`:
    the digest of the program, "" if the hub has none."""

    python: str
    hub_url: str
    claim: str
    fingerprint: str = ""
    archive: str = ""


def batch_job(settings: SlurmSettings, request: Request, program: NodeProgram, losses: int = 0) -> BatchJob:
    """Returns the job of an attempt. `losses`: how many jobs the attempt had before."""
    demand = request.demand
    # Without limits of its own a run gets a core for each of its processes.
    cores = math.ceil(demand.cpus) or demand.gpus or demand.slots or 1
    log = f"{settings.shared_folder}/trainhub-%j.log" if settings.shared_folder else "/dev/null"
    return BatchJob(
        name=job_name(request, losses),
        partition=settings.partition,
        body=_body(demand.nodes, program),
        nodes=demand.nodes,
        cpus_per_task=cores,
        gpus_per_node=demand.gpus,
        gres=settings.gres_name(),
        memory_mb=math.ceil(demand.memory_bytes / MB),
        time_limit_s=time_limit_s(settings, request),
        # The ranks are asked to end while there is still time to save. Slurm sends it to every process of
        # the job, so it must be one that does nothing to a process that does not wait for it.
        warning=WarningSignal("URG", request.grace_s + END_ALLOWANCE_S),
        account=settings.account,
        qos=settings.qos,
        output=log,
        environment=_variables(settings, program, request),
    )


def job_name(request: Request, losses: int = 0) -> str:
    """Returns the job's name, which no other job has: a submission without an answer is found by it."""
    again = f"-again-{losses}" if losses else ""
    return f"{request.label.replace(' ', '-')}.{request.attempt}-{request.holder[:8]}{again}"


def time_limit_s(settings: SlurmSettings, request: Request) -> int:
    return request.demand.limit_s or settings.default_time_s


def _body(nodes: int, program: NodeProgram) -> tuple[str, ...]:
    steps = f"--nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --kill-on-bad-exit=0"
    arguments = shlex.join([program.hub_url, program.archive])
    return (
        "# What brings TrainHub's node program to a node, from the hub, and becomes it.",
        f"start=$(cat <<'{_END}'",
        *Path(node_start.__file__).read_text().splitlines(),
        _END,
        ")",
        "# One process on each node, for this run alone. It ends with the run.",
        f'exec srun {steps} {shlex.quote(program.python)} -I -c "$start" {arguments}',
    )


def _variables(settings: SlurmSettings, program: NodeProgram, request: Request) -> dict[str, str]:
    optional = {FINGERPRINT: program.fingerprint, CACHE: settings.node_cache}
    present = {name: value for name, value in optional.items() if value}
    return {CLAIM: program.claim, GRACE: str(request.grace_s), **present}
