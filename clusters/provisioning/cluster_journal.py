"""The journal of a cluster: what people and the provider did to it. Append-only."""

from __future__ import annotations

from clusters.models import Cluster, ClusterEvent


def add(cluster: Cluster, kind: str, message: str, actor: str = "hub") -> None:
    """`kind`: made, changed, drained, resumed, grows, grown, shrinks, shrunk or trouble."""
    ClusterEvent.objects.create(cluster=cluster, kind=kind, message=message, actor=actor)


def recent(cluster: Cluster, most: int = 30) -> list[ClusterEvent]:
    """The latest first."""
    return list(ClusterEvent.objects.filter(cluster=cluster).order_by("-pk")[:most])
