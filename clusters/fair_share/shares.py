"""The shares of workspaces in a cluster: how operators set them, and how each workspace stands."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q, QuerySet

from clusters.fair_share import use
from clusters.models import Cluster, ClusterShare
from clusters.provisioning import cluster_journal
from trainhub_launch.errors import SpecError
from trainhub_launch.scheduler import fair_share
from trainhub_launch.scheduler.fair_share import DEFAULT_SHARE, Standing
from workspaces import audit
from workspaces.database.compiled_queries import compiled
from workspaces.models import User, Workspace

MAX_SHARE = 1000.0


@dataclass(frozen=True)
class ShareRow:
    """A workspace that may use the cluster: its share, and how it stands. `gpu_seconds`: its decayed use.
    `standing`: its parts of the use and of the shares of all workspaces listed."""

    workspace: Workspace
    share: float
    gpu_seconds: float
    standing: Standing

    @property
    def gpu_hours(self) -> float:
        return self.gpu_seconds / 3600

    @property
    def share_percent(self) -> int:
        return round(self.standing.share * 100)

    @property
    def used_percent(self) -> int:
        return round(self.standing.used * 100)


def shares_of(cluster: Cluster) -> dict[int, float]:
    """Returns the shares that operators have set, by the workspace's id; the others have DEFAULT_SHARE."""
    return dict(_set_shares(cluster.pk))


@compiled
def _set_shares(cluster_id: int) -> QuerySet[ClusterShare, tuple[int, float]]:
    return ClusterShare.objects.filter(cluster_id=cluster_id).values_list("workspace", "share")


def share_rows(cluster: Cluster) -> list[ShareRow]:
    """Returns the workspaces that may use the cluster, by name."""
    workspaces = list(_workspaces(cluster))
    shares, used = shares_of(cluster), use_by_workspace(use.use_of(cluster))
    standings = fair_share.standings(used, shares, [workspace.pk for workspace in workspaces])
    return [
        ShareRow(
            workspace,
            shares.get(workspace.pk, DEFAULT_SHARE),
            used.get(workspace.pk, 0.0),
            standings[workspace.pk],
        )
        for workspace in workspaces
    ]


def use_by_workspace(by_person: Mapping[use.UserKey, float]) -> dict[int, float]:
    amounts: dict[int, float] = {}
    for (workspace, _), amount in by_person.items():
        amounts[workspace] = amounts.get(workspace, 0.0) + amount
    return amounts


def set_shares(cluster: Cluster, shares: Mapping[str, float], who: User) -> tuple[str, ...]:
    """Sets the shares of the workspaces named by their slugs; the others are kept. Returns the slugs whose
    share changed. Raises SpecError that names the workspace."""
    workspaces = {workspace.slug: workspace for workspace in _workspaces(cluster)}
    for slug, share in shares.items():
        if slug not in workspaces:
            raise SpecError(slug, f"is no workspace that may use the cluster {cluster.name}")
        if not math.isfinite(share) or not 0 <= share <= MAX_SHARE:
            raise SpecError(slug, f"must be a number between 0 and {MAX_SHARE:g}")
    with transaction.atomic():
        # Placement locks the same row, so no run is placed by the old shares after this.
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        current = shares_of(cluster)
        changed = {
            slug: share
            for slug, share in shares.items()
            if share != current.get(workspaces[slug].pk, DEFAULT_SHARE)
        }
        for slug, share in sorted(changed.items()):
            ClusterShare.objects.update_or_create(
                cluster=cluster, workspace=workspaces[slug], defaults={"share": share}
            )
        if changed:
            values = ", ".join(f"{slug} {share:g}" for slug, share in sorted(changed.items()))
            cluster_journal.record_event(
                cluster, "changed", f"Shares set by {who}: {values}.", who.get_username()
            )
            audit.record(who, "cluster.shares_changed", cluster.name, shares=changed)
    return tuple(sorted(changed))


def _workspaces(cluster: Cluster) -> Collection[Workspace]:
    """Returns the workspaces that may use the cluster, without archived ones, by slug."""
    listed = Q(clusters=cluster) if cluster.workspaces.exists() else Q()
    return Workspace.objects.filter(listed, archived_at=None).order_by("slug")
