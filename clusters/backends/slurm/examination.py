"""`Test` of a cluster's settings: what works, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from clusters.backends.slurm.client import ControllerSettings, SlurmClient
from clusters.backends.slurm.commands import ROOT
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.nodes import Partition, SlurmNode
from clusters.backends.slurm.script import BatchJob
from clusters.backends.slurm.settings import SlurmSettings
from trainhub_launch.scheduler.capacity import words


class CheckResult(StrEnum):
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class SlurmCheck:
    name: str
    result: CheckResult
    sentence: str


_NO_SUBMISSION = SlurmCheck(
    "submission",
    CheckResult.WARNING,
    "Account and QOS are checked when a person submits: jobs are theirs.",
)


def examine(settings: SlurmSettings, client: SlurmClient, *, may_submit: bool = True) -> list[SlurmCheck]:
    """Returns the checks in the order in which they were done; after a failed call the rest is left out.
    `may_submit`: whether jobs can belong to the owner of the client."""
    checks: list[SlurmCheck] = []
    try:
        for check in _checks(settings, client, may_submit and client.owner != ROOT):
            checks.append(check)
    except SlurmError as error:
        checks.append(SlurmCheck("connection", CheckResult.ERROR, str(error)))
    return checks


def _checks(settings: SlurmSettings, client: SlurmClient, may_submit: bool) -> Iterator[SlurmCheck]:
    yield SlurmCheck("version", CheckResult.OK, client.greeting())
    nodes = [node for node in client.all_nodes() if settings.partition in node.partitions]
    try:
        partition = client.partition(settings.partition)
    except SlurmError as error:
        if error.fault is not SlurmFault.REFUSED:
            raise
        yield SlurmCheck(
            "partition", CheckResult.ERROR, f"Slurm has no partition {settings.partition}. See: sinfo."
        )
        return
    yield _check_partition(partition, nodes)
    yield _check_time(partition, settings)
    yield _check_gpus(settings, nodes)
    yield _check_submission(settings, client) if may_submit else _NO_SUBMISSION
    controller = client.controller_settings()
    yield from _hidden_jobs(controller)
    yield _check_accounting(client, controller)
    yield SlurmCheck(
        "python",
        CheckResult.WARNING,
        "The nodes need Python 3.11 or newer; whether they have it is known when a run has started there.",
    )


def _hidden_jobs(controller: ControllerSettings | None) -> Iterator[SlurmCheck]:
    """The hub looks at all jobs as one account. Root may always do so, and others only if Slurm lets them."""
    hidden = sorted({"jobs", "nodes", "usage"} & controller.private_data) if controller else []
    if controller is None:
        says = "slurmrestd does not say whether Slurm hides jobs of others (PrivateData). If it does,"
    else:
        says = f"Slurm hides {words(hidden)} of others (PrivateData). Unless it is root,"
    if hidden or controller is None:
        yield SlurmCheck(
            "visibility",
            CheckResult.WARNING,
            f"{says} the account as which the hub looks must be an operator of Slurm, otherwise the hub "
            "loses sight of its jobs: sacctmgr modify user ACCOUNT set adminlevel=operator.",
        )


def _check_accounting(client: SlurmClient, controller: ControllerSettings | None) -> SlurmCheck:
    if client.has_accounting():
        return SlurmCheck("accounting", CheckResult.OK, "Accounting is on.")
    age_s = None if controller is None else controller.min_job_age_s
    memory = "a few" if age_s is None else age_s
    return SlurmCheck(
        "accounting",
        CheckResult.WARNING,
        f"Accounting is off, and Slurm remembers ended jobs for {memory} s (MinJobAge): what happens to a "
        "job while the hub is away for longer cannot be found out.",
    )


def _check_partition(partition: Partition, nodes: list[SlurmNode]) -> SlurmCheck:
    usable = sum(node.is_usable for node in nodes)
    if not partition.is_up:
        return SlurmCheck("partition", CheckResult.ERROR, f"The partition {partition.name} is not up.")
    result = CheckResult.OK if usable else CheckResult.WARNING
    return SlurmCheck(
        "partition",
        result,
        f"The partition {partition.name} is up; {usable} of {len(nodes)} nodes are usable.",
    )


def _check_time(partition: Partition, settings: SlurmSettings) -> SlurmCheck:
    longest = partition.max_time_s
    if longest is None:
        return SlurmCheck("time", CheckResult.OK, "The partition has no time limit.")
    if settings.default_time_s > longest:
        result, advice = CheckResult.ERROR, "the default time is longer, and such runs would wait for ever."
    elif settings.max_time_s > longest:
        result, advice = (
            CheckResult.WARNING,
            "the greatest time is longer, and such runs would wait for ever.",
        )
    else:
        result, advice = CheckResult.OK, "the times of the settings are within it."
    return SlurmCheck("time", result, f"The partition's time limit is {longest} s; {advice}")


def _check_gpus(settings: SlurmSettings, nodes: list[SlurmNode]) -> SlurmCheck:
    models = {model for node in nodes for model, count in node.gpus.items() if count}
    if not models:
        return SlurmCheck(
            "gpus", CheckResult.WARNING, "The nodes of the partition have no GPUs in Slurm (Gres)."
        )
    missing = sorted(
        gres for gres in settings.gres.values() if ":" in gres and gres.partition(":")[2] not in models
    )
    if missing:
        have = ", ".join(sorted(f"gpu:{model}" if model else "gpu" for model in models))
        return SlurmCheck(
            "gpus", CheckResult.ERROR, f"No node has {', '.join(missing)}. The partition has: {have}."
        )
    count = sum(sum(node.gpus.values()) for node in nodes)
    return SlurmCheck("gpus", CheckResult.OK, f"The partition has {count} GPUs.")


def _check_submission(settings: SlurmSettings, client: SlurmClient) -> SlurmCheck:
    job = BatchJob(
        "trainhub-test", settings.partition, ("true",), account=settings.account, qos=settings.qos,
        time_limit_s=settings.default_time_s,
    )  # fmt: skip
    try:
        if not client.try_submission(job):
            return _NO_SUBMISSION
    except SlurmError as error:
        if error.fault is not SlurmFault.REFUSED:
            raise
        return SlurmCheck("submission", CheckResult.ERROR, str(error))
    return SlurmCheck(
        "submission", CheckResult.OK, f"Slurm takes jobs of {client.owner} with these settings."
    )
