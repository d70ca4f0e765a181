"""Times in which nodes are kept free for a workspace, or for nobody (maintenance)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from clusters.models import Cluster, NodeReservation
from clusters.provisioning import cluster_journal
from clusters.visibility import may_use
from trainhub_launch.errors import SpecError
from trainhub_launch.scheduler.capacity import NodeWindow
from workspaces import audit
from workspaces.database.compiled_queries import compiled
from workspaces.models import User, Workspace

MAX_WINDOWS = 500
MAX_LENGTH = timedelta(days=366)
MAX_NOTE = 200


def current(cluster: Cluster, now: datetime | None = None) -> QuerySet[NodeReservation]:
    """Returns the windows of the cluster that are not over, by their begin."""
    return _not_over(cluster.pk, now or timezone.now())


def _not_over(cluster_id: int, now: datetime) -> QuerySet[NodeReservation]:
    windows = NodeReservation.objects.filter(node__cluster_id=cluster_id, ends_at__gt=now)
    return windows.select_related("node", "workspace").order_by("begins_at", "node__name", "pk")


@compiled
def _current(cluster_id: int, now: datetime) -> QuerySet[NodeReservation]:
    return _not_over(cluster_id, now)


def windows_of(cluster: Cluster, now: datetime) -> dict[int, tuple[NodeWindow, ...]]:
    """Returns the windows of the cluster's nodes by their ids, as placement reads them. One query."""
    by_node: dict[int, list[NodeWindow]] = defaultdict(list)
    for window in _current(cluster.pk, now):
        by_node[window.node_id].append(
            NodeWindow(
                begin_s=(window.begins_at - now).total_seconds(),
                end_s=(window.ends_at - now).total_seconds(),
                workspace=window.workspace_id,
                why=_why(window),
            )
        )
    return {node: tuple(windows) for node, windows in by_node.items()}


def add(
    cluster: Cluster,
    nodes: Sequence[str],
    span: tuple[datetime, datetime],
    who: User,
    *,
    workspace: str = "",
    note: str = "",
) -> list[NodeReservation]:
    """Keeps the named nodes free for the workspace (a slug; "" = nobody) from the begin to the end of `span`.

    Present runs continue. Raises SpecError that names the field."""
    begin, end = span
    _check_span(begin, end)
    if "\0" in note or len(note) > MAX_NOTE:
        raise SpecError("note", f"must have at most {MAX_NOTE} characters and no NUL")
    owner = _workspace(cluster, workspace)
    with transaction.atomic():
        # Placement locks the same row: no run is placed across the window after this.
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        nodes_by_name = {node.name: node for node in cluster.nodes.filter(revoked_at=None)}
        unknown = [name for name in nodes if name not in nodes_by_name]
        if unknown or not nodes:
            raise SpecError(
                "nodes", f"{unknown[0]!r} is no node of {cluster.name}" if unknown else "name a node"
            )
        if current(cluster).count() + len(set(nodes)) > MAX_WINDOWS:
            raise SpecError("nodes", f"a cluster has at most {MAX_WINDOWS} windows; end some first")
        windows = [
            NodeReservation.objects.create(
                node=nodes_by_name[name],
                begins_at=begin,
                ends_at=end,
                workspace=owner,
                note=note.strip(),
                created_by=who.get_username(),
            )
            for name in dict.fromkeys(nodes)
        ]
        for window in windows:
            _record(window, who, is_set=True)
    return windows


def end(window: NodeReservation, who: User) -> None:
    """Ends the window now, or before it begins."""
    cluster = window.node.cluster
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        deleted, _ = NodeReservation.objects.filter(pk=window.pk).delete()
        if deleted:
            _record(window, who, is_set=False)


def _record(window: NodeReservation, who: User, *, is_set: bool) -> None:
    """Records in the cluster's journal and in the audit trail that a window was set or ended."""
    name, actor = window.node.name, who.get_username()
    message = f"Window {'set' if is_set else 'ended'} by {who}: {name} {_why(window)}."
    cluster_journal.record_event(window.node.cluster, "changed", message, actor)
    audit.record(
        who,
        "node.window_set" if is_set else "node.window_ended",
        name,
        begins_at=window.begins_at.isoformat(),
        ends_at=window.ends_at.isoformat(),
        reserved_for="" if window.workspace is None else window.workspace.slug,
        note=window.note,
    )


def _check_span(begin: datetime, end: datetime) -> None:
    if begin >= end:
        raise SpecError("ends_at", "must be after begins_at")
    if end <= timezone.now():
        raise SpecError("ends_at", "is over already; choose a later time")
    if end - begin > MAX_LENGTH:
        raise SpecError(
            "ends_at", f"must be at most {MAX_LENGTH.days} days after begins_at; drain the node instead"
        )


def _workspace(cluster: Cluster, slug: str) -> Workspace | None:
    if not slug:
        return None
    owner = None if "\0" in slug else Workspace.objects.filter(slug=slug).first()
    if owner is None or not may_use(cluster, owner):
        raise SpecError("workspace", f"{slug!r} is no workspace that may use the cluster {cluster.name}")
    return owner


def _why(window: NodeReservation) -> str:
    begin, end = window.begins_at.astimezone(UTC), window.ends_at.astimezone(UTC)
    until = f"{end:%H:%M}" if begin.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    what = "is under maintenance" if window.workspace_id is None else "is reserved for another workspace"
    # The note on a reservation is for its workspace.
    note = f" ({window.note})" if window.note and window.workspace_id is None else ""
    return f"{what} from {begin:%Y-%m-%d %H:%M} to {until} UTC{note}"
