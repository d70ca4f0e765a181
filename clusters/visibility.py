"""The clusters and nodes that a workspace may use."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from clusters.models import Cluster, Node
from workspaces.database.compiled_queries import compiled
from workspaces.models import Workspace


def clusters_of(workspace: Workspace | None) -> QuerySet[Cluster]:
    """Returns the clusters that are open to all, and those that list the workspace, if one is given."""
    return _clusters_of(None if workspace is None else workspace.pk)


def visible_nodes(workspace: Workspace | None) -> QuerySet[Node]:
    return (
        Node.objects.filter(cluster__in=clusters_of(workspace))
        .select_related("cluster")
        .order_by("cluster__name", "name")
    )


def may_use(cluster: Cluster, workspace: Workspace) -> bool:
    return bool(_usable(cluster.pk, workspace.pk))


def cluster_named(name: str, workspace: Workspace) -> Cluster | None:
    """Returns the cluster if the workspace may use it."""
    return next(iter(_named(name, workspace.pk)), None)


@compiled
def _usable(cluster_id: int, workspace_id: int) -> QuerySet[Cluster, tuple[int]]:
    return _clusters_of(workspace_id).filter(pk=cluster_id).values_list("pk")


@compiled
def _named(name: str, workspace_id: int) -> QuerySet[Cluster]:
    return _clusters_of(workspace_id).filter(name=name)


def _clusters_of(workspace_id: int | None) -> QuerySet[Cluster]:
    is_visible = Q(workspaces=None)
    if workspace_id is not None:
        listed = Cluster.workspaces.through.objects.filter(workspace_id=workspace_id)
        is_visible |= Q(pk__in=listed.values("cluster_id"))
    return Cluster.objects.filter(deleted_at=None).filter(is_visible).order_by("name").distinct()
