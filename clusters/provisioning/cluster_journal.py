"""The append-only journal of a cluster: changes by operators and by the provider."""

from __future__ import annotations

from clusters.models import Cluster, ClusterEvent


def record_event(cluster: Cluster, kind: str, message: str, actor: str = "hub") -> None:
    """Adds an entry to the cluster's journal. `kind`: made, changed, drained, resumed, grows, grown, shrinks,
    shrunk or trouble."""
    ClusterEvent.objects.create(cluster=cluster, kind=kind, message=message, actor=actor)


def recent(cluster: Cluster, limit: int = 30) -> list[ClusterEvent]:
    """Returns the latest entries, newest first."""
    return list(ClusterEvent.objects.filter(cluster=cluster).order_by("-pk")[:limit])
