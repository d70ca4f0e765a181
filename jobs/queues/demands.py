"""What queued runs need of the nodes that get them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from environments.catalog import PythonLookup
from jobs.lineage.dataset_uses import data_capabilities
from jobs.models import Run
from jobs.queues.data_needs import DataNeeds
from jobs.queues.environment_needs import EnvironmentNeeds
from jobs.queues.node_sizes import NodeSizes
from jobs.states import RunState
from trainhub_launch.frameworks import demand
from trainhub_launch.scheduler.capacity import Demand
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
        needs = own_demand(spec, run.workspace_id)
        needs = dataclasses.replace(
            needs,
            python=pythons.python_of(spec.environment, run.workspace_id),
            capabilities=needs.capabilities
            | environments.capabilities(run)
            | needs_of_hub.get(run.pk, frozenset())
            | (data.capabilities_of(spec, run.workspace) if spec.inputs else frozenset()),
            # The workspace may have to be read.
            data=data.lists_of(spec, run.workspace) if spec.inputs else frozenset(),
        )
        yield QueuedRun(run, spec, node_sizes.with_gpus(needs, spec.resources.cluster))


def own_demand(spec: RunSpec, workspace_id: int) -> Demand:
    """Returns what the spec itself says that each node needs, without what its environment, its data and the
    cluster's nodes add. No query."""
    return dataclasses.replace(
        demand(spec), limit_s=longest_s(spec), workspace=workspace_id, capabilities=spec.capabilities
    )


def longest_s(spec: RunSpec) -> int | None:
    """Returns after how many seconds a run that is placed has ended at the latest, None without a limit."""
    limits = spec.limits
    return None if limits.timeout_s is None else limits.timeout_s + limits.grace_s + START_ALLOWANCE_S


def with_needs(run: Run) -> QueuedRun:
    """Returns the run with what it needs. Raises SpecError if its spec cannot be read."""
    (queued,) = with_demands([(run, read_spec(run.spec))])
    return queued


def queued_with_ids(run_ids: Collection[str]) -> Iterable[Run]:
    """Returns those of the runs that are queued, with what placement needs of them."""
    if len(run_ids) == 1:
        return _queued_with_id(*run_ids)
    return _queued().filter(pk__in=run_ids)


@compiled
def _queued_with_id(run_id: str) -> QuerySet[Run]:
    return _queued().filter(pk=run_id)


def _queued() -> QuerySet[Run]:
    # The preview holds the whole plan, which may be long, and is not needed here.
    queued = Run.objects.filter(state=RunState.QUEUED).order_by()
    return queued.select_related("workspace", "created_by").defer("preview")
