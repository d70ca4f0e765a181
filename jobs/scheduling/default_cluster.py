"""The cluster of a run whose spec names none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clusters.kinds import backend_of
from clusters.visibility import clusters_of
from jobs.models import Run
from jobs.states import RunKind
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.spec import RunSpec
from workspaces.access import Principal

# How many of the latest runs are searched for a cluster that is still there.
MAX_RUNS = 20


def default_cluster(who: Principal) -> str:
    """Returns the name of the only cluster of the workspace; of several the one that the person, else the
    workspace used last, else the one with the most free GPUs, and among equals the most free CPU slots.

    Clusters without a node that takes runs count only if there are no others. Returns "" if the workspace has
    no cluster."""
    clusters = list(clusters_of(who.workspace))
    if len(clusters) < 2:
        # What the nodes offer takes a dozen queries, and decides nothing.
        return clusters[0].name if clusters else ""
    nodes = {cluster.name: backend_of(cluster).nodes(cluster, who.workspace) for cluster in clusters}
    usable = {name: free for name, free in nodes.items() if any(map(_may_run, free))} or nodes
    if len(usable) < 2:
        return next(iter(usable), "")
    last_used = next((name for name in _clusters_used(who) if name in usable), None)
    # `clusters_of` sorts by name, and `max` returns the first of equals.
    return last_used or max(usable, key=lambda name: _free(usable[name]))


def with_cluster(spec: RunSpec, who: Principal) -> RunSpec:
    """Returns the spec with the default cluster if it names none."""
    if spec.resources.cluster:
        return spec
    return replace(spec, resources=replace(spec.resources, cluster=default_cluster(who)))


def _clusters_used(who: Principal) -> Iterator[str]:
    runs = Run.objects.for_workspace(who.workspace).filter(kind=RunKind.JOB).order_by("-number")
    for latest in (runs.filter(created_by=who.user), runs):
        yield from latest.values_list("spec__resources__cluster", flat=True)[:MAX_RUNS]


def _may_run(node: FreeNode) -> bool:
    return node.takes_runs or node.is_coming


def _free(nodes: tuple[FreeNode, ...]) -> tuple[int, int]:
    """Returns the numbers of free GPUs and free CPU slots."""
    ready = [node for node in nodes if node.takes_runs]
    return sum(len(node.gpus) for node in ready), sum(node.slots for node in ready)
