"""The present holder of each GPU, as metric labels."""

from __future__ import annotations

from collections.abc import Iterable

from clusters.models import Lease, Node
from jobs.models import Member, Run
from workspaces.models import Workspace

LABELS = ("run", "run_id", "rank", "user", "experiment", "workspace")
NO_HOLDER = ("",) * len(LABELS)
OTHER_WORKSPACE = ("busy", *("",) * (len(LABELS) - 1))


def holders(nodes: Iterable[Node], viewer: Workspace | None) -> dict[str, tuple[str, ...]]:
    """Returns GPU UUID -> values of LABELS for every leased GPU.

    A `viewer` of None sees all runs; a workspace sees the runs of others only as "busy". Ranks that share a
    GPU are joined by commas."""
    leases = list(Lease.objects.filter(node__in=list(nodes), released_at=None))
    runs = {
        run.pk: run
        for run in Run.objects.filter(pk__in={lease.holder for lease in leases})
        .select_related("workspace", "experiment", "created_by")
        .defer("spec", "preview")
    }
    ranks = _ranks(runs)
    labels: dict[str, tuple[str, ...]] = {}
    for lease in leases:
        run = runs.get(lease.holder)
        for uuid in lease.gpus:
            labels[uuid] = _labels(run, ranks.get((lease.holder, lease.attempt, uuid), []), viewer)
    return labels


def _labels(run: Run | None, ranks: list[int], viewer: Workspace | None) -> tuple[str, ...]:
    if run is None or (viewer is not None and run.workspace_id != viewer.pk):
        return OTHER_WORKSPACE
    return (
        str(run.number),
        run.pk,
        ",".join(str(rank) for rank in sorted(ranks)),
        run.created_by.username if run.created_by else "",
        run.experiment.name,
        run.workspace.name,
    )


def _ranks(runs: dict[str, Run]) -> dict[tuple[str, int, str], list[int]]:
    ranks: dict[tuple[str, int, str], list[int]] = {}
    members = Member.objects.filter(attempt__run__in=runs).values_list(
        "attempt__run_id", "attempt__number", "rank", "gpus"
    )
    for run_id, attempt, rank, gpus in members:
        for uuid in gpus:
            ranks.setdefault((run_id, attempt, uuid), []).append(rank)
    return ranks
