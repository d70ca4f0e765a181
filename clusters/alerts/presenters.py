"""Alerts as one workspace reads them: whose run it is, only where it may know that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from clusters.alerts.facts import HOLDER
from clusters.alerts.rules import RULES, GpuRule
from clusters.models import Alert, Gpu, Node
from clusters.visibility import clusters_of
from workspaces.models import Workspace

STRANGER = "a run of another workspace"
NOBODY = "nobody"
TOLD = ("firing", "cleared")


@dataclass(frozen=True)
class Line:
    """An alert in words. `run` is the run's id, `run_title` "run 41": empty for another workspace's."""

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
    def since(self) -> datetime:
        return self.alert.since


def visible(workspace: Workspace, run: str = "") -> QuerySet[Alert]:
    """What was told of the nodes that the workspace may use; what is still pending is nobody's business. With
    `run`, a run's id, only what concerns that run, where it is one of theirs."""
    found = Alert.objects.filter(
        state__in=TOLD, node__cluster__in=clusters_of(workspace).order_by().values("pk")
    )
    if run:
        found = found.filter(holder=run, facts__holder_workspace=workspace.pk)
    return found.select_related("node", "node__cluster").defer("node__vitals", "node__interpreters")


def firing_count(workspace: Workspace) -> int:
    return visible(workspace).filter(state="firing").count()


def firing_of_run(run: str, workspace: Workspace) -> list[Line]:
    return lines(visible(workspace, run).filter(state="firing").order_by("severity", "-pk"), workspace.pk)


def firing_on(nodes: Iterable[Node], workspace: Workspace) -> list[Line]:
    """On these nodes, the gravest first."""
    found = visible(workspace).filter(state="firing", node__in=list(nodes))
    return lines(found.order_by("severity", "-fired_at", "-pk"), workspace.pk)


def all_firing(workspace: Workspace, most: int) -> list[Line]:
    return lines(
        visible(workspace).filter(state="firing").order_by("severity", "-fired_at", "-pk")[:most],
        workspace.pk,
    )


def lines(alerts: Iterable[Alert], workspace_id: int) -> list[Line]:
    found = list(alerts)
    gpus = Gpu.objects.in_bulk({uuid for alert in found if (uuid := _gpu_of(alert))})
    return [line(alert, workspace_id, gpus.get(_gpu_of(alert))) for alert in found]


def line(alert: Alert, workspace_id: int, gpu: Gpu | None) -> Line:
    facts: dict[str, Any] = alert.facts
    is_ours = facts.get("holder_workspace") == workspace_id
    label = facts.get("holder_label", "")
    shown = (label if is_ours else STRANGER) if alert.holder else NOBODY
    return Line(
        alert=alert,
        title=title(alert.kind),
        sentence=alert.sentence.replace(HOLDER, shown),
        gpu=gpu,
        run=alert.holder if is_ours else "",
        run_title=label if is_ours and alert.holder else "",
    )


def title(kind: str) -> str:
    return RULES[kind].title if kind in RULES else kind


def gpu_of(alert: Alert) -> Gpu | None:
    uuid = _gpu_of(alert)
    return Gpu.objects.filter(pk=uuid).first() if uuid else None


def _gpu_of(alert: Alert) -> str:
    about_gpu = isinstance(RULES.get(alert.kind), GpuRule)
    return str(alert.facts.get("gpu") or (alert.subject if about_gpu else ""))


KINDS = {kind: rule.title for kind, rule in RULES.items()}
