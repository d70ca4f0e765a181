"""The queued runs as the order and the placement see them, remembered by this process.

The spec of a run does not change while it waits, so it is read once. What may change is read from the
database each time, for all queued runs at once and without their specs: which they are, their priorities,
their persons and their claims. So each answer is what the database holds, whichever process has changed it.

Most of many waiting runs are alike. Those that need the same, of the same person, share one `DemandGroup`:
what placement finds out about one of them holds for the others."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import QuerySet

from jobs.models import Run
from jobs.queues.demands import own_demand
from jobs.queues.node_sizes import NodeSizes
from jobs.states import RunState
from trainhub_launch.scheduler import fair_share
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.fair_share import FairQueue, Turn
from trainhub_launch.spec import DataInput, EnvironmentRef, RunSpec
from trainhub_launch.spec_reader import read_spec
from workspaces import process_caches
from workspaces.database.compiled_queries import compiled

log = logging.getLogger(__name__)
# So many specs are in memory at once.
READ_AT_ONCE = 500


@dataclass(frozen=True, eq=False)
class DemandGroup:
    """What runs of one person have in common that need the same and may start under the same conditions.
    There is one object for all of them. `demand`: see `own_demand`."""

    cluster: str
    workspace: int
    person: int
    demand: Demand
    environment: EnvironmentRef
    inputs: frozenset[tuple[str, DataInput]]


@dataclass(eq=False)
class WaitingRun:
    """A queued run. `attempt`: the number of the last one. `sentence`: why it waits, as this process has last
    stored it, None = unknown."""

    pk: str
    number: int
    attempt: int
    group: DemandGroup
    turn: Turn[int, int]
    sentence: str | None = None

    @property
    def workspace_id(self) -> int:
        return self.group.workspace

    @property
    def priority(self) -> int:
        return self.turn.priority


@dataclass
class WaitingQueue:
    """The queued runs of one cluster, by their ids. `group_sizes`: how many there are of each group.
    `weights`: what a run of each group counts per second, in GPUs (`fair_share.weight`, over all nodes)."""

    cluster: str
    runs: dict[str, WaitingRun] = field(default_factory=dict)
    fair_queue: FairQueue[int, int] = field(default_factory=FairQueue)
    group_sizes: dict[DemandGroup, int] = field(default_factory=dict)
    weights: dict[DemandGroup, float] = field(default_factory=dict)

    def add(self, run: WaitingRun) -> None:
        self.runs[run.pk] = run
        self.fair_queue.add(run.turn)
        self.group_sizes[run.group] = self.group_sizes.get(run.group, 0) + 1

    def remove(self, run: WaitingRun) -> None:
        del self.runs[run.pk]
        self.fair_queue.remove(run.turn)
        self.group_sizes[run.group] -= 1
        if not self.group_sizes[run.group]:
            del self.group_sizes[run.group]
            self.weights.pop(run.group, None)

    def of_turn(self, turn: Turn[int, int]) -> WaitingRun:
        return self.runs[turn.run.partition("-")[2]]

    def workspaces(self) -> set[int]:
        return {group.workspace for group in self.group_sizes}

    def claimants(self) -> list[WaitingRun]:
        """Returns the runs that were at the head when they were read."""
        return [self.of_turn(turn) for turn in self.fair_queue.heads()]

    def copy(self) -> WaitingQueue:
        """Returns one that no longer changes; the runs are the same."""
        return WaitingQueue(
            self.cluster, dict(self.runs), self.fair_queue.copy(), dict(self.group_sizes), dict(self.weights)
        )


@dataclass(frozen=True)
class WaitingQueues:
    """What waits at one moment. `unreadable`: the ids of runs whose spec this version cannot read."""

    by_cluster: dict[str, WaitingQueue]
    unreadable: tuple[str, ...] = ()

    def of(self, cluster: str) -> WaitingQueue:
        return self.by_cluster.get(cluster) or WaitingQueue(cluster)


# What may change of a run from one reading to the next.
_CHANGING = ("attempt", "priority", "created_by", "claimed_at")
_Row = tuple[str, int, int, int | None, datetime | None]


class _Memory:
    """What this process remembers: the queued runs and nothing else. Who has the lock only reads from the
    database, and so waits for nobody."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forget()

    def clear(self) -> None:
        with self._lock:
            self._forget()

    def read(self, clusters: Iterable[str] | None) -> WaitingQueues:
        with self._lock:
            try:
                self._catch_up()
                names = self._queues.keys() if clusters is None else self._queues.keys() & set(clusters)
                for name in names:
                    self._resize(self._queues[name])
                queues = {name: self._queues[name].copy() for name in names}
            except Exception:
                # Whatever it was, the next reading starts from the database alone.
                self._forget()
                raise
            return WaitingQueues(queues, tuple(sorted(self._unreadable)))

    def _forget(self) -> None:
        self._runs: dict[str, WaitingRun] = {}
        self._unreadable: set[str] = set()
        self._queues: dict[str, WaitingQueue] = {}
        self._groups: dict[tuple[object, ...], DemandGroup] = {}

    def _catch_up(self) -> None:
        rows = {row[0]: row for row in _queued_rows()}
        for pk in self._runs.keys() - rows.keys():
            self._remove(self._runs.pop(pk))
        self._unreadable &= rows.keys()
        for pk, run in self._runs.items():
            self._refresh(run, rows[pk])
        new = sorted(rows.keys() - self._runs.keys() - self._unreadable)
        for start in range(0, len(new), READ_AT_ONCE):
            self._add_new(new[start : start + READ_AT_ONCE])

    def _add_new(self, pks: Collection[str]) -> None:
        for row in _new_row(*pks) if len(pks) == 1 else _new_rows().filter(pk__in=pks):
            person = row.created_by_id or 0
            # A spec that an earlier version wrote may not be readable any more; the other runs must still be
            # placed.
            try:
                group = self._group_of(read_spec(row.spec), row.workspace_id, person)
            except Exception:
                log.exception("The spec of run %s cannot be read", row.pk)
                self._unreadable.add(row.pk)
                continue
            turn = Turn(
                submitted_at=row.created_at.timestamp(),
                run=f"{row.number:010}-{row.pk}",
                workspace=row.workspace_id,
                person=person,
                priority=row.priority,
                claimed_at=_timestamp(row.claimed_at),
            )
            self._runs[row.pk] = run = WaitingRun(row.pk, row.number, row.attempt, group, turn)
            self._insert(run)

    def _insert(self, run: WaitingRun) -> None:
        """Adds the run to the queue of its cluster, with the weight of its group."""
        queue = self._queues.setdefault(run.group.cluster, WaitingQueue(run.group.cluster))
        weight = queue.weights.setdefault(run.group, _weight(run.group.demand))
        run.turn = dataclasses.replace(run.turn, weight=weight)
        queue.add(run)

    def _group_of(self, spec: RunSpec, workspace: int, person: int) -> DemandGroup:
        return self._unique(
            DemandGroup(
                spec.resources.cluster,
                workspace,
                person,
                own_demand(spec, workspace),
                spec.environment,
                frozenset(spec.inputs.items()),
            )
        )

    def _unique(self, group: DemandGroup) -> DemandGroup:
        """Returns the one object for runs of this kind."""
        if len(self._groups) > 2 * len(self._runs) + READ_AT_ONCE:
            in_use = {run.group for run in self._runs.values()}
            self._groups = {key: item for key, item in self._groups.items() if item in in_use}
        key = (group.cluster, group.workspace, group.person, group.demand, group.environment, group.inputs)
        return self._groups.setdefault(key, group)

    def _refresh(self, run: WaitingRun, row: _Row) -> None:
        """Takes over what has changed."""
        _, attempt, priority, person, claimed_at = row
        if attempt != run.attempt:
            # It has started meanwhile, and says why it was queued again.
            run.attempt, run.sentence = attempt, None
        values = priority, person or 0, _timestamp(claimed_at)
        if values == (run.turn.priority, run.turn.person, run.turn.claimed_at):
            return
        self._remove(run)
        if run.group.person != values[1]:
            run.group = self._unique(dataclasses.replace(run.group, person=values[1]))
        run.turn = dataclasses.replace(run.turn, priority=values[0], person=values[1], claimed_at=values[2])
        self._insert(run)

    def _remove(self, run: WaitingRun) -> None:
        queue = self._queues[run.group.cluster]
        queue.remove(run)
        if not queue.runs:
            del self._queues[run.group.cluster]

    def _resize(self, queue: WaitingQueue) -> None:
        """Weighs the runs anew that take all GPUs of their nodes, as many as the present nodes have."""
        sizes = NodeSizes()
        for group in [group for group in queue.group_sizes if group.demand.all_gpus is not None]:
            weight = _weight(sizes.with_gpus(group.demand, queue.cluster))
            if weight == queue.weights[group]:
                continue
            for run in [run for run in queue.runs.values() if run.group is group]:
                queue.fair_queue.remove(run.turn)
                run.turn = dataclasses.replace(run.turn, weight=weight)
                queue.fair_queue.add(run.turn)
            queue.weights[group] = weight


_memory = _Memory()
process_caches.register(_memory.clear)


def read_queues(clusters: Iterable[str] | None = None) -> WaitingQueues:
    """Returns what waits now for the clusters with these names, None = for all. One query, one more for each
    500 runs that are new, and those of a cluster's offers if any run takes all GPUs of its nodes."""
    return _memory.read(clusters)


@compiled
def _new_row(run_id: str) -> QuerySet[Run]:
    return _new_rows().filter(pk=run_id)


def _new_rows() -> QuerySet[Run]:
    queued = Run.objects.filter(state=RunState.QUEUED).order_by()
    return queued.only("number", "workspace", "created_at", "spec", *_CHANGING)


@compiled
def _queued_rows() -> QuerySet[Run, _Row]:
    queued = Run.objects.filter(state=RunState.QUEUED).order_by()
    return queued.values_list("pk", *_CHANGING)


def _weight(needs: Demand) -> float:
    return needs.nodes * fair_share.weight(needs.gpus, needs.slots)


def _timestamp(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
