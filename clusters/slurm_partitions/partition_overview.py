"""The page of a cluster that is a partition of a Slurm: its nodes, its queue, and what is in use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from clusters.allocations import partitions, relays
from clusters.allocations.snapshots import SlurmSnapshot, snapshot_of
from clusters.backends.slurm.job_status import JobStatus
from clusters.backends.slurm.nodes import SlurmNode
from clusters.backends.slurm.states import JobPhase
from clusters.models import Allocation, Cluster

# The first of Slurm's words that a node has decides how it looks: tone and icon.
_LOOKS = (
    ({"DOWN", "FAIL", "NOT_RESPONDING", "INVALID_REG"}, "failed", "x-circle"),
    ({"DRAIN", "MAINTENANCE", "FAILING", "RESERVED", "PLANNED"}, "preparing", "exclamation-triangle"),
    ({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "REBOOT_ISSUED"}, "waiting", "clock"),
    ({"ALLOCATED", "MIXED", "COMPLETING"}, "running", "play"),
    ({"IDLE"}, "completed", "check-circle"),
)
_OTHER_LOOK = ("waiting", "question-mark-circle")


@dataclass(frozen=True)
class SlurmNodeRow:
    node: SlurmNode
    accounts: tuple[str, ...]

    @property
    def words(self) -> str:
        return " + ".join(word.lower().replace("_", " ") for word in self.node.states)

    @property
    def look(self) -> tuple[str, str]:
        """Returns the tone and the icon of its state."""
        states = set(self.node.states)
        return next(((tone, icon) for signs, tone, icon in _LOOKS if signs & states), _OTHER_LOOK)

    @property
    def gpus(self) -> int:
        return sum(self.node.gpus.values())

    @property
    def gpus_allocated(self) -> int:
        return sum(self.node.gpus_allocated.values())

    @property
    def gpu_models(self) -> str:
        return ", ".join(sorted(filter(None, self.node.gpus)))

    @property
    def memory_bytes(self) -> int:
        return self.node.memory_mb * 1024**2

    @property
    def memory_allocated_bytes(self) -> int:
        return self.node.memory_allocated_mb * 1024**2

    @property
    def reason_at(self) -> datetime | None:
        return None if self.node.reason_at is None else datetime.fromtimestamp(self.node.reason_at, UTC)


@dataclass(frozen=True)
class OtherJobs:
    """The jobs of one account that are not TrainHub's; `account` is empty for all accounts together."""

    account: str
    running: int
    waiting: int
    gpus: int


@dataclass(frozen=True)
class PartitionOverview:
    """`trouble`: why Slurm does not answer now, "" = it does; then everything is of `snapshot.read_at`.
    `relay_trouble`: why nodes do not reach the hub through its relay, "" = they do, or there is none."""

    snapshot: SlurmSnapshot
    nodes: tuple[SlurmNodeRow, ...]
    own_job_ids: frozenset[int] = field(default_factory=frozenset)
    relay_trouble: str = ""

    @property
    def trouble(self) -> str:
        return self.snapshot.trouble

    @property
    def usable(self) -> int:
        return sum(row.node.is_usable for row in self.nodes)

    @property
    def gpus(self) -> int:
        return sum(row.gpus for row in self.nodes)

    @property
    def gpus_allocated(self) -> int:
        return sum(row.gpus_allocated for row in self.nodes)

    @property
    def cpus(self) -> int:
        return sum(row.node.cpus for row in self.nodes)

    @property
    def cpus_allocated(self) -> int:
        return sum(row.node.cpus_allocated for row in self.nodes)

    @property
    def jobs_waiting(self) -> int:
        return sum(job.state.phase is JobPhase.WAITING for job in self.snapshot.jobs)

    @property
    def jobs_active(self) -> int:
        return len(self.snapshot.jobs) - self.jobs_waiting

    @property
    def others(self) -> list[JobStatus]:
        return [job for job in self.snapshot.jobs if job.job_id not in self.own_job_ids]


def partition_overview(cluster: Cluster) -> PartitionOverview:
    row = partitions.partition_of(cluster)
    snapshot = snapshot_of(row)
    accounts = _accounts_by_node(snapshot.jobs)
    own = Allocation.objects.filter(cluster=cluster, over_at=None).values_list("job_id", flat=True)
    return PartitionOverview(
        snapshot,
        tuple(SlurmNodeRow(node, accounts.get(node.name, ())) for node in snapshot.nodes),
        frozenset(job_id for job_id in own if job_id is not None),
        relays.trouble_of(row) if relays.relay_address(row) else "",
    )


def other_jobs(overview: PartitionOverview, *, by_account: bool) -> list[OtherJobs]:
    """Returns the counts of the jobs that are not TrainHub's, those with most GPUs first. A site may hide
    whose jobs they are from its people, but not from the hub; so only operators get them by account."""
    by_name: dict[str, list[JobStatus]] = defaultdict(list)
    for job in overview.others:
        by_name[job.user if by_account else ""].append(job)
    rows = [_counts(name, jobs) for name, jobs in by_name.items()]
    return sorted(rows, key=lambda row: (-row.gpus, -row.running, row.account))


def _counts(account: str, jobs: Sequence[JobStatus]) -> OtherJobs:
    active = [job for job in jobs if job.state.phase is not JobPhase.WAITING]
    # The GPUs of a waiting job are those that it wants.
    return OtherJobs(account, len(active), len(jobs) - len(active), sum(job.gpus for job in active))


def _accounts_by_node(jobs: Iterable[JobStatus]) -> Mapping[str, tuple[str, ...]]:
    accounts: dict[str, set[str]] = defaultdict(set)
    for job in jobs:
        if job.state.phase is not JobPhase.WAITING:
            for name in job.nodes:
                accounts[name].add(job.user)
    return {name: tuple(sorted(users)) for name, users in accounts.items()}
