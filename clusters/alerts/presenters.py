"""Alerts as one workspace may read them: runs of other workspaces are not named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from clusters.alerts.facts import HOLDER
from clusters.alerts.rules import RULES, GpuRule, is_about_run
from clusters.models import Alert, Gpu, Node
from clusters.visibility import clusters_of
from workspaces.models import Workspace

OTHER_WORKSPACE_RUN = "a run of another workspace"
NO_HOLDER = "no run"
VISIBLE_STATES = ("firing", "cleared")


@dataclass(frozen=True)
class AlertSummary:
    """An alert for display. `run` is the run's id and `run_title` "run 41"; both are empty for a run of
    another workspace."""

    alert: Alert
    title: str
    sentence: str
    run: str
    run_title: str
    gpu: Gpu | None

    @property
    def node(self) -> Node | None:
        return self.alert.node

    @property
    def is_open(self) -> bool:
        return self.alert.state == "firing"

    @property
    def is_snoozed(self) -> bool:
        until = self.alert.snoozed_until
        return self.is_open and until is not None and until > timezone.now()

    @property
    def can_drain(self) -> bool:
        """Whether draining the node keeps new runs away from the trouble."""
        node = self.node
        is_in_use = node is not None and node.drained_at is None and node.revoked_at is None
        return self.is_open and is_in_use and not is_about_run(RULES.get(self.alert.kind))

    @property
    def since(self) -> datetime:
        return self.alert.since


def visible(workspace: Workspace, run: str = "") -> QuerySet[Alert]:
    """Returns the alerts that fired on nodes that the workspace may use, without pending ones. With `run`, a
    run's id, only those about that run, if it belongs to the workspace."""
    alerts = Alert.objects.filter(
        state__in=VISIBLE_STATES, node__cluster__in=clusters_of(workspace).order_by().values("pk")
    )
    if run:
        # Without the workspace, a guessed run id would show which alerts another workspace's run caused.
        alerts = alerts.filter(holder=run, facts__holder_workspace=workspace.pk)
    return alerts.select_related("node", "node__cluster").defer("node__vitals", "node__interpreters")


def awake(workspace: Workspace) -> QuerySet[Alert]:
    """Returns the firing alerts that are not snoozed."""
    return visible(workspace).filter(state="firing").exclude(snoozed_until__gt=timezone.now())


def firing_count(workspace: Workspace) -> int:
    return awake(workspace).count()


def firing_of_run(run: str, workspace: Workspace) -> list[AlertSummary]:
    alerts = visible(workspace, run).filter(state="firing")
    return summarize_all(alerts.order_by("severity", "-pk"), workspace.pk)


def firing_on(nodes: Iterable[Node], workspace: Workspace) -> list[AlertSummary]:
    """Returns the alerts that fire on these nodes, the most severe first."""
    alerts = visible(workspace).filter(state="firing", node__in=list(nodes))
    return summarize_all(alerts.order_by("severity", "-fired_at", "-pk"), workspace.pk)


def all_firing(workspace: Workspace, limit: int) -> list[AlertSummary]:
    """Returns the most severe firing alerts that are not snoozed, up to `limit`."""
    return summarize_all(awake(workspace).order_by("severity", "-fired_at", "-pk")[:limit], workspace.pk)


def summarize_all(alerts: Iterable[Alert], workspace_id: int) -> list[AlertSummary]:
    listed = list(alerts)
    # One query for the GPUs of all alerts instead of one for each.
    gpus = Gpu.objects.in_bulk({uuid for alert in listed if (uuid := _gpu_uuid(alert))})
    return [summarize(alert, workspace_id, gpus.get(_gpu_uuid(alert))) for alert in listed]


def summarize(alert: Alert, workspace_id: int, gpu: Gpu | None) -> AlertSummary:
    # The text is stored with a placeholder and completed here: a member of one workspace must not learn which
    # run of another one holds a GPU.
    is_ours = alert.facts.get("holder_workspace") == workspace_id
    label = str(alert.facts.get("holder_label", ""))
    holder = (label if is_ours else OTHER_WORKSPACE_RUN) if alert.holder else NO_HOLDER
    return AlertSummary(
        alert=alert,
        title=title(alert.kind),
        sentence=alert.sentence.replace(HOLDER, holder),
        gpu=gpu,
        run=alert.holder if is_ours else "",
        run_title=label if is_ours and alert.holder else "",
    )


def title(kind: str) -> str:
    return RULES[kind].title if kind in RULES else kind


def gpu_of(alert: Alert) -> Gpu | None:
    uuid = _gpu_uuid(alert)
    return Gpu.objects.filter(pk=uuid).first() if uuid else None


def _gpu_uuid(alert: Alert) -> str:
    about_gpu = isinstance(RULES.get(alert.kind), GpuRule)
    return str(alert.facts.get("gpu") or (alert.subject if about_gpu else ""))


KINDS = {kind: rule.title for kind, rule in RULES.items()}
