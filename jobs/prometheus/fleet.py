"""Nodes, runs and alerts as metric families."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db.models import Count, Min, QuerySet
from prometheus_client.core import GaugeMetricFamily, Metric

from clusters.models import Alert, Node
from clusters.states import NodeStatus
from jobs.models import Run
from jobs.states import ACTIVE, RunKind, RunState
from trainhub_launch.metrics import HOST_METRICS

NODE = ("instance", "cluster", "Hostname")
_UNIT = {"%": "percent", "B": "bytes", "B/s": "bytes_per_second"}
NodeStatuses = Sequence[tuple[Node, NodeStatus]]


def nodes(statuses: NodeStatuses, now: datetime) -> Iterator[Metric]:
    up = GaugeMetricFamily(
        "trainhub_node_up", "1 while the node reports, 0 while it is silent, lost or revoked.", labels=NODE
    )
    drained = GaugeMetricFamily("trainhub_node_drained", "1 while the node takes no new runs.", labels=NODE)
    age = GaugeMetricFamily(
        "trainhub_node_report_age_seconds", "Time since the node's last report.", labels=NODE
    )
    for node, status in statuses:
        labels = _labels(node)
        up.add_metric(labels, float(status is NodeStatus.READY))
        drained.add_metric(labels, float(node.drained_at is not None))
        if node.last_report_at is not None:
            age.add_metric(labels, max(0.0, (now - node.last_report_at).total_seconds()))
    yield from (up, drained, age)
    ready = [
        (_labels(node), node.vitals.get("host", {})) for node, how in statuses if how is NodeStatus.READY
    ]
    for metric in HOST_METRICS:
        gauge = GaugeMetricFamily(
            _host_name(metric.key, metric.unit), f"{metric.label} of the machine.", labels=NODE
        )
        for labels, values in ready:
            if metric.key in values:
                gauge.add_metric(labels, values[metric.key])
        yield gauge


def run_metrics(visible: QuerySet[Run], now: datetime) -> Iterator[Metric]:
    """Yields metrics about runs. `visible`: the runs that the caller may see."""
    active = GaugeMetricFamily("trainhub_runs", "Active runs, by state.", labels=("workspace", "state"))
    ours = visible.filter(kind=RunKind.JOB, state__in=ACTIVE)
    for name, state, count in ours.values_list("workspace__name", "state").annotate(Count("pk")):
        active.add_metric((name, state), count)
    yield active
    waiting = GaugeMetricFamily(
        "trainhub_queue_oldest_seconds",
        "Waiting time of the run that has waited longest.",
        labels=("workspace",),
    )
    for name, since in (
        visible.filter(state=RunState.QUEUED).values_list("workspace__name").annotate(Min("created_at"))
    ):
        waiting.add_metric((name,), max(0.0, (now - since).total_seconds()))
    yield waiting


def alert_metrics(open_alerts: Sequence[Alert]) -> Iterator[Metric]:
    firing = GaugeMetricFamily(
        "trainhub_alerts_firing", "Alerts that fire now.", labels=("kind", "severity", "instance")
    )
    counted = Counter(
        (alert.kind, alert.severity, alert.node.name if alert.node else "") for alert in open_alerts
    )
    for labels, count in counted.items():
        firing.add_metric(labels, count)
    yield firing


def _labels(node: Node) -> tuple[str, ...]:
    return node.name, node.cluster.name, node.hostname


def _host_name(key: str, unit: str) -> str:
    """Returns the name of a host metric for Prometheus, with its unit spelled out: cpu_pct ->
    trainhub_host_cpu_percent."""
    stem = key.removesuffix("_pct").removesuffix("_bytes_s").removesuffix("_bytes")
    return "_".join(["trainhub_host", stem, *([_UNIT[unit]] if unit else [])])
