"""What Slurm last said about a partition, read at most every few seconds by each process.

However many people look at a page, Slurm is asked once per `FRESH_S`.
One thread reads; others get what there is. A Slurm that is away keeps its last known state, with the sentence
why."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.utils import timezone

from clusters.allocations import partitions
from clusters.backends.slurm.errors import SlurmError
from clusters.backends.slurm.job_status import JobStatus
from clusters.backends.slurm.nodes import SlurmNode
from clusters.models import SlurmPartition
from workspaces import process_caches

# Two calls each time, beside those that follow the hub's own jobs (see `trainhub.worker.periodic_tasks`).
FRESH_S = 25.0


@dataclass(frozen=True)
class SlurmSnapshot:
    """`nodes` of the partition, and its waiting and running jobs, those of others too. `read_at`: when Slurm
    said so, None = never. `trouble`: why it does not answer now, "" = it does."""

    nodes: tuple[SlurmNode, ...] = ()
    jobs: tuple[JobStatus, ...] = ()
    read_at: datetime | None = None
    trouble: str = ""


@dataclass
class _Slot:
    lock: threading.Lock = field(default_factory=threading.Lock)
    snapshot: SlurmSnapshot = field(default_factory=SlurmSnapshot)
    expires_at: float = 0.0


_slots: dict[tuple[int, str], _Slot] = {}
process_caches.register(_slots.clear)


def snapshot_of(row: SlurmPartition) -> SlurmSnapshot:
    """Returns the partition's state, not older than `FRESH_S` unless Slurm does not answer."""
    slot = _slots.setdefault((row.cluster_id, row.partition), _Slot())
    if time.monotonic() < slot.expires_at:
        return slot.snapshot
    # Who comes first waits for Slurm; a second one only if there is nothing to show yet.
    if not slot.lock.acquire(blocking=slot.expires_at == 0):
        return slot.snapshot
    try:
        if time.monotonic() >= slot.expires_at:
            slot.snapshot = _read(row, slot.snapshot)
            slot.expires_at = time.monotonic() + FRESH_S
    finally:
        slot.lock.release()
    return slot.snapshot


def _read(row: SlurmPartition, last: SlurmSnapshot) -> SlurmSnapshot:
    now = timezone.now()
    try:
        client = partitions.observer_of(row, for_page=True)
        nodes = tuple(node for node in client.all_nodes() if row.partition in node.partitions)
        jobs = tuple(client.queue_of(row.partition))
    except SlurmError as error:
        partitions.record_trouble(row, error, now)
        return replace(last, trouble=str(error))
    partitions.record_trouble(row, None, now)
    return SlurmSnapshot(nodes, jobs, now)
