"""The order of a cluster's queue: by priority, then by fair share, and each run's place in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from clusters.fair_share import shares, use
from clusters.kinds import backend_of
from clusters.models import Cluster, Lease
from environments.catalog import PythonLookup
from jobs.lineage.dataset_uses import data_capabilities
from jobs.models import Run
from jobs.scheduling.data_needs import DataNeeds
from jobs.scheduling.environment_needs import EnvironmentNeeds
from jobs.scheduling.node_sizes import NodeSizes
from jobs.states import RunKind, RunState
from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks import demand
from trainhub_launch.scheduler import fair_share
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.fair_share import FairQueue, Turn
from trainhub_launch.spec import RunSpec
from trainhub_launch.spec_reader import read_spec
from workspaces.database.compiled_queries import compiled

# Between its lease and the start of its ranks, from which the time limit counts, a run may take so long.
START_ALLOWANCE_S = 60


@dataclass(frozen=True)
class QueuedRun:
    run: Run
    spec: RunSpec
    needs: Demand


@dataclass(frozen=True)
class QueueStanding:
    """The place of a waiting run, from 1, among `total` runs that wait for the cluster, and the sentence
    that says so, with the reason."""

    place: int
    total: int
    sentence: str


def with_demands(items: Sequence[tuple[Run, RunSpec]]) -> Iterator[QueuedRun]:
    """Yields the runs with what each needs of each node, and for how long. One query for all, one if any
    reads a dataset, one for each environment that has its own Python, three for each dataset's version, and
    those of a cluster's offers if any takes all GPUs of its nodes."""
    environments, pythons = EnvironmentNeeds([run for run, _ in items]), PythonLookup()
    needs_of_hub = data_capabilities(
        [run.pk for run, spec in items if any(item.dataset for item in spec.inputs.values())]
    )
    data, node_sizes = DataNeeds(), NodeSizes()
    for run, spec in items:
        needs = dataclasses.replace(
            demand(spec),
            limit_s=longest_s(spec),
            workspace=run.workspace_id,
            python=pythons.python_of(spec.environment, run.workspace_id),
            capabilities=environments.capabilities(run)
            | spec.capabilities
            | needs_of_hub.get(run.pk, frozenset())
            | (data.capabilities_of(spec, run.workspace) if spec.inputs else frozenset()),
            # The workspace may have to be read.
            data=data.lists_of(spec, run.workspace) if spec.inputs else frozenset(),
        )
        needs = node_sizes.with_gpus(needs, spec.resources.cluster)
        yield QueuedRun(run, spec, needs)


def longest_s(spec: RunSpec) -> int | None:
    """Returns after how many seconds a run that is placed has ended at the latest, None without a limit."""
    limits = spec.limits
    return None if limits.timeout_s is None else limits.timeout_s + limits.grace_s + START_ALLOWANCE_S


def in_order(cluster: Cluster, queue: Sequence[QueuedRun], now: datetime | None = None) -> list[QueuedRun]:
    """Returns the queued runs of the cluster in the order in which they start. Three queries, however
    many runs there are."""
    by_turn = {_turn(item): item for item in queue}
    # The order of those that wait does not depend on what others have used.
    used = use.use_of(cluster, now, workspaces={item.run.workspace_id for item in queue})
    order = FairQueue(by_turn).order(used, shares.shares_of(cluster))
    return [by_turn[turn] for turn in order]


def readable(runs: Iterable[Run]) -> list[QueuedRun]:
    """Returns the runs whose specs can be read; the next turn in the queue fails the others."""
    items = []
    for run in runs:
        try:
            items.append((run, read_spec(run.spec)))
        except SpecError:
            continue
    return list(with_demands(items))


def waiting_for(cluster: Cluster) -> list[QueuedRun]:
    """Returns the runs of all workspaces that wait for the cluster, in order."""
    runs = Run.objects.queued().filter(spec__resources__cluster=cluster.name).defer("preview")
    return in_order(cluster, readable(runs))


def standing_of(run: Run) -> QueueStanding | None:
    """Returns where the run stands in the hub's queue of its cluster, None if it does not wait there."""
    if run.state != RunState.QUEUED or run.kind != RunKind.JOB:
        return None
    cluster = next(iter(_clusters(run.spec["resources"]["cluster"])), None)
    if cluster is None or backend_of(cluster).scheduler is not None:
        return None
    waiting = waiting_for(cluster)
    place = next((place for place, item in enumerate(waiting, 1) if item.run.pk == run.pk), None)
    if place is None:
        return None
    sentence = f"{ordinal(place)} of {len(waiting)}; {use_sentence(run, cluster)}."
    return QueueStanding(place, len(waiting), sentence)


@compiled
def _clusters(name: str) -> QuerySet[Cluster]:
    return Cluster.objects.filter(name=name, deleted_at=None)


def use_sentence(run: Run, cluster: Cluster) -> str:
    """Returns how much the run's workspace has used of the cluster, and its share, both beside the other
    workspaces that have runs there now: the share of the rest is lent to these."""
    active = _active_workspaces(cluster) | {run.workspace_id}
    used = shares.use_by_workspace(use.use_of(cluster, workspaces=active))
    own = fair_share.standings(used, shares.shares_of(cluster), active)[run.workspace_id]
    return (
        f"of what the workspaces with runs on {cluster.name} have used recently, {run.workspace.slug} has "
        f"used {own.used:.0%}; its share is {own.share:.0%}"
    ).replace("%", " %")


def keep_claims(heads: Iterable[Run], queue: Sequence[QueuedRun]) -> None:
    """Records which runs of the queue are at the head and keep their claims until they start or are
    outranked."""
    now, at_head = timezone.now(), {run.pk for run in heads}
    new = [item.run.pk for item in queue if item.run.claimed_at is None and item.run.pk in at_head]
    over = [item.run.pk for item in queue if item.run.claimed_at is not None and item.run.pk not in at_head]
    if not new and not over:
        return
    with transaction.atomic():
        Run.objects.filter(pk__in=new, state=RunState.QUEUED).update(claimed_at=now)
        Run.objects.filter(pk__in=over).update(claimed_at=None)


def ordinal(number: int) -> str:
    """Returns "1st", "2nd", "3rd", "4th" …"""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else suffix}"


def _turn(item: QueuedRun) -> Turn[int, int]:
    run, needs = item.run, item.needs
    return Turn(
        submitted_at=run.created_at.timestamp(),
        run=f"{run.number:010}-{run.pk}",
        workspace=run.workspace_id,
        person=run.created_by_id or 0,
        priority=run.priority,
        weight=needs.nodes * fair_share.weight(needs.gpus, needs.slots),
        claimed_at=None if run.claimed_at is None else run.claimed_at.timestamp(),
    )


def _active_workspaces(cluster: Cluster) -> set[int]:
    """Returns the ids of the workspaces with running or waiting runs."""
    waiting = Run.objects.filter(kind=RunKind.JOB, state=RunState.QUEUED)
    waiting = waiting.filter(spec__resources__cluster=cluster.name)
    holding = Lease.objects.filter(node__cluster=cluster, released_at=None).exclude(workspace=None)
    return set(waiting.values_list("workspace_id", flat=True)) | {
        workspace or 0 for workspace in holding.values_list("workspace_id", flat=True)
    }
