"""The clusters and nodes that a workspace may use."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from clusters.models import Cluster, Node
from workspaces.models import Workspace


def clusters_of(workspace: Workspace | None) -> QuerySet[Cluster]:
    """Returns the clusters that are open to all, and those that list the workspace, if one is given."""
    is_visible = Q(workspaces=None)
    if workspace is not None:
        listed = Cluster.workspaces.through.objects.filter(workspace_id=workspace.pk)
        is_visible |= Q(pk__in=listed.values("cluster_id"))
    return Cluster.objects.filter(deleted_at=None).filter(is_visible).order_by("name").distinct()


def visible_nodes(workspace: Workspace | None) -> QuerySet[Node]:
    return (
        Node.objects.filter(cluster__in=clusters_of(workspace))
        .select_related("cluster")
        .order_by("cluster__name", "name")
    )


def may_use(cluster: Cluster, workspace: Workspace) -> bool:
    return clusters_of(workspace).filter(pk=cluster.pk).exists()
