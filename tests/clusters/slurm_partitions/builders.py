"""Clusters that are partitions of a Slurm which does not answer, because these tests have none."""

from __future__ import annotations

from typing import Any

from clusters.models import Allocation, Cluster, SlurmPartition
from workspaces.models import User


def make_partition(name: str = "hpc", **settings: Any) -> Cluster:
    cluster = Cluster.objects.create(name=name, kind="slurm", avoid_unhealthy_gpus=False)
    SlurmPartition.objects.create(cluster=cluster, **{"partition": "main", **settings})
    return cluster


def make_allocation(cluster: Cluster, holder: str, person: User | None = None, **fields: Any) -> Allocation:
    """A job that waits in Slurm's queue."""
    values = {
        "attempt": 1,
        "person": person,
        "account": "ada",
        "state": "queued",
        "job_id": 41,
        "word": "PENDING",
        "reason": "Priority",
        "sentence": "Job 41 is in Slurm's queue. Waits behind jobs of higher priority in this partition.",
    }
    return Allocation.objects.create(cluster=cluster, holder=holder, **{**values, **fields})
