"""Notifies pages and channels about an alert that fired or cleared.

The messages are queued within the transaction that changed the alert, and are sent after it."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.conf import settings

from clusters.alerts import presenters
from clusters.models import Alert, Cluster, Gpu
from live.publish import publish_on_commit
from live.topics import node_topic, run_topic
from trainhub_launch.json_types import JsonObject
from workspaces.models import Workspace
from workspaces.notifications import outbox
from workspaces.notifications.events import ALERT_CLEARED, ALERT_FIRED, Event


def publish_change(alert: Alert) -> None:
    """Tells the pages that show the alert that it has changed."""
    if alert.node is not None:
        publish_on_commit(node_topic(alert.node.pk), {"type": "alert.changed", "node": alert.node.name})
    if alert.holder:
        publish_on_commit(run_topic(alert.holder), {"type": "event.added", "run": alert.holder})


def notify(alert: Alert, at: datetime, key_end: str = "") -> None:
    """Announces the present state of `alert`, which is firing or cleared. Pages hear of a snoozed alert, too,
    channels do not. `key_end` distinguishes a repeated message from the first one."""
    publish_change(alert)
    if alert.snoozed_until is not None and alert.snoozed_until > at:
        return
    has_fired = alert.state == "firing"
    event_names = {f"alert.{alert.severity}"} | (set() if has_fired else {ALERT_CLEARED})
    gpu = presenters.gpu_of(alert)
    outbox.post(
        Event(
            name=ALERT_FIRED if has_fired else ALERT_CLEARED,
            key=f"alert:{alert.pk}:{alert.state}{key_end}",
            at=at,
            subscriptions=event_names,
            workspaces=_workspace_ids(alert),
            # Built once for each workspace, because each may read different holders in it.
            body=partial(body, alert, gpu, at),
            theirs=alert.facts.get("holder_workspace"),
        )
    )


def body(alert: Alert, gpu: Gpu | None, at: datetime, workspace_id: int) -> JsonObject:
    """Returns the JSON of docs/alerts.md for one workspace, which learns holders of its own runs only."""
    summary = presenters.summarize(alert, workspace_id, gpu)
    event = ALERT_FIRED if alert.state == "firing" else ALERT_CLEARED
    node = alert.node
    where = "" if node is None else f" on {node.name}"
    if event == ALERT_FIRED:
        text = f"[{alert.severity}] {summary.title}{where}, since {alert.since:%H:%M} UTC: {summary.sentence}"
    else:
        text = (
            f"[cleared] {summary.title}{where}, which began at {alert.since:%H:%M} UTC. It was: "
            f"{summary.sentence}"
        )
    return {
        "event": event,
        "at": at.isoformat(),
        "text": text,
        "url": f"{settings.PUBLIC_URL}/alerts/#alert-{alert.pk}",
        "alert": {
            "id": alert.pk,
            "kind": alert.kind,
            "title": summary.title,
            "severity": alert.severity,
            "state": alert.state,
            "sentence": summary.sentence,
            "since": alert.since.isoformat(),
            "fired_at": _iso(alert.fired_at),
            "cleared_at": _iso(alert.cleared_at),
        },
        "node": None if node is None else {"name": node.name, "cluster": node.cluster.name},
        "gpu": None if gpu is None else {"uuid": gpu.uuid, "index": gpu.index, "name": gpu.name},
        "run": {"id": summary.run, "title": summary.run_title} if summary.run else None,
    }


def _workspace_ids(alert: Alert) -> list[int]:
    """Returns the ids of the workspaces that may use the node's cluster."""
    cluster: Cluster | None = None if alert.node is None else alert.node.cluster
    if cluster is None:
        return []
    # A cluster without listed workspaces is open to all of them.
    allowed = list(cluster.workspaces.values_list("pk", flat=True))
    return allowed or list(Workspace.objects.values_list("pk", flat=True))


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
