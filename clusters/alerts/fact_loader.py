"""The picture that rules judge by, read from the database in a fixed number of queries, however many nodes
there are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils.dateparse import parse_datetime

from clusters.alerts import baseline
from clusters.alerts.facts import GpuFacts, Happening, Held, NodeFacts
from clusters.models import Baseline, Gpu, Lease, Node, NodeEvent
from clusters.node_reports.heartbeat import silence_s, status
from clusters.node_reports.hub_uptime import Heard, heard
from clusters.states import NodeStatus
from clusters.telemetry import latest
from clusters.telemetry.latest import Latest

OLDEST = timedelta(seconds=60)
"""Numbers older than that are not of now."""
GPU_KINDS = {"xid": "xid", "ecc": "ecc", "gpu_back": "back"}
"""Kind of the journal -> of a happening."""
EVENTS_FOR = timedelta(days=1)
MOST_EVENTS = 10_000


def nodes(now: datetime) -> list[NodeFacts]:
    """All nodes that have ever reported and are not revoked."""
    rows = list(
        Node.objects.filter(revoked_at=None).exclude(last_report_at=None).defer("interpreters").order_by("pk")
    )
    span = heard(now)
    newest = latest.of(rows, now.timestamp())
    devices: dict[int, list[Gpu]] = defaultdict(list)
    for gpu in Gpu.objects.filter(present=True).order_by("node_id", "index"):
        devices[gpu.node_id].append(gpu)
    leases: dict[int, list[Lease]] = defaultdict(list)
    for lease in Lease.objects.filter(released_at=None).order_by("pk"):
        leases[lease.node_id].append(lease)
    known = _Known(now, span, newest, dict(devices), dict(leases), _baselines(rows, now), _happenings(now))
    return [_node(row, known) for row in rows]


@dataclass(frozen=True)
class _Known:
    """What the queries brought, by node or by GPU."""

    now: datetime
    span: Heard
    newest: Mapping[int, Latest]
    devices: Mapping[int, Sequence[Gpu]]
    leases: Mapping[int, Sequence[Lease]]
    baselines: Mapping[int, Baseline]
    happenings: Mapping[str, Sequence[Happening]]


def _node(node: Node, known: _Known) -> NodeFacts:
    vitals: dict[str, Any] = node.vitals
    held = known.leases.get(node.pk, ())
    leases = [(lease, Held(lease.holder, lease.attempt, lease.label, lease.workspace_id)) for lease in held]
    holders = {uuid: holder for lease, holder in leases for uuid in lease.gpus}
    is_ready = status(node, known.now, known.span) is NodeStatus.READY
    return NodeFacts(
        pk=node.pk,
        name=node.name,
        is_heard=is_ready and _is_fresh(vitals, known.now),
        silence_s=silence_s(node, known.now, known.span),
        is_drained=node.drained_at is not None,
        is_monitor_only=node.monitor_only,
        nvml=node.nvml,
        clock_offset_s=node.clock_offset_s,
        memory_bytes=node.memory_bytes or None,
        memory_used_bytes=vitals.get("memory_used_bytes"),
        disk_free_bytes=vitals.get("disk_free_bytes"),
        ports=baseline.ports_now(known.baselines[node.pk], node),
        holders=tuple(holder for _, holder in leases),
        gpus=tuple(_gpu(gpu, node, holders.get(gpu.uuid), known) for gpu in known.devices.get(node.pk, ())),
    )


def _gpu(gpu: Gpu, node: Node, held: Held | None, known: _Known) -> GpuFacts:
    vitals: dict[str, Any] = node.vitals
    told = vitals.get("gpus", {}).get(gpu.uuid, {})
    newest = known.newest.get(node.pk)
    bucket = {} if newest is None else newest.gpus.get(gpu.uuid, {})
    return GpuFacts(
        uuid=gpu.uuid,
        index=gpu.index,
        name=gpu.name,
        memory_bytes=gpu.memory_bytes,
        state=gpu.state,
        error=gpu.error,
        parent=gpu.parent,
        mig=gpu.mig,
        held=held,
        mean=_numbers(told, {metric: mean for metric, (mean, _) in bucket.items()}),
        peak=_numbers(told, {metric: peak for metric, (_, peak) in bucket.items()}),
        counters=vitals.get("counters", {}).get(gpu.uuid, {}),
        processes=vitals.get("processes", {}).get(gpu.uuid, ()),
        happenings=known.happenings.get(gpu.uuid, ()),
        grown=baseline.growth(known.baselines[node.pk], gpu.uuid, known.now),
    )


def _numbers(told: Mapping[str, float], bucket: Mapping[str, float]) -> dict[str, float]:
    """Of the newest bucket; where it tells nothing, those of the last heartbeat."""
    return {**told, **{metric: value for metric, value in bucket.items() if not math.isnan(value)}}


def _is_fresh(vitals: Mapping[str, Any], now: datetime) -> bool:
    at = parse_datetime(vitals.get("at") or "")
    return at is not None and now - at <= OLDEST


def _baselines(rows: Collection[Node], now: datetime) -> dict[int, Baseline]:
    known = {item.pk: item for item in Baseline.objects.all()}
    found, changed = {}, []
    for node in rows:
        found[node.pk], is_new = baseline.refresh(known.get(node.pk), node, now)
        if is_new:
            changed.append(found[node.pk])
    if changed:
        with transaction.atomic():
            Baseline.objects.bulk_create(
                changed,
                update_conflicts=True,
                unique_fields=["node"],
                update_fields=["ports", "ecc"],
                batch_size=200,
            )
    return found


def _happenings(now: datetime) -> dict[str, list[Happening]]:
    """What has befallen GPUs of late, by UUID, with the restarts of their machines."""
    found: dict[str, list[Happening]] = defaultdict(list)
    recent = NodeEvent.objects.filter(at__gt=now - EVENTS_FOR)
    gpus = recent.filter(kind__in=tuple(GPU_KINDS)).exclude(gpu="").order_by("-pk")[:MOST_EVENTS]
    on: dict[int, set[str]] = defaultdict(set)
    for event in gpus:
        found[event.gpu].append(
            Happening(GPU_KINDS[event.kind], (now - event.at).total_seconds(), event.code)
        )
        on[event.node_id].add(event.gpu)
    restarts = recent.filter(node__in=on, kind="restarted").values_list("node_id", "at") if on else ()
    for node_id, at in restarts:
        for uuid in on[node_id]:
            found[uuid].append(Happening("restarted", (now - at).total_seconds()))
    return found
