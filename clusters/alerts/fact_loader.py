"""Loads the facts that rules evaluate. The number of queries does not depend on the number of nodes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.dateparse import parse_datetime
from django.utils.module_loading import import_string

from clusters.alerts import baseline, silence_sources
from clusters.alerts.facts import GpuFacts, LeaseFacts, NodeFacts, RecentEvent, RunSilence
from clusters.models import Baseline, Gpu, Lease, Node, NodeEvent
from clusters.node_reports.heartbeat import silence_s, status
from clusters.node_reports.hub_uptime import ListeningWindow, listening_window
from clusters.node_reports.inventory import Vitals
from clusters.states import NodeStatus
from clusters.telemetry import latest
from clusters.telemetry.latest import LatestBucket

# A node whose numbers are older counts as not reporting.
MAX_AGE = timedelta(seconds=60)
# Kind of a journal entry -> kind of a RecentEvent.
GPU_KINDS = {"xid": "xid", "ecc": "ecc", "gpu_back": "back"}
EVENT_WINDOW = timedelta(days=1)
MAX_EVENTS = 10_000


def load_nodes(now: datetime) -> list[NodeFacts]:
    """Returns the facts of all nodes that have ever reported and are not revoked."""
    # The interpreters of a node may be large, and no rule reads them.
    rows = list(
        Node.objects.filter(revoked_at=None).exclude(last_report_at=None).defer("interpreters").order_by("pk")
    )
    uptime = listening_window(now)
    newest = latest.for_nodes(rows, now.timestamp())
    devices: dict[int, list[Gpu]] = defaultdict(list)
    for gpu in Gpu.objects.filter(present=True).order_by("node_id", "index"):
        devices[gpu.node_id].append(gpu)
    leases: dict[int, list[Lease]] = defaultdict(list)
    for lease in Lease.objects.filter(released_at=None).order_by("pk"):
        leases[lease.node_id].append(lease)
    holders = {lease.holder for node_leases in leases.values() for lease in node_leases}
    data = _Loaded(
        now,
        uptime,
        newest,
        dict(devices),
        dict(leases),
        _baselines(rows, now),
        _recent_events(now),
        _silences(holders, uptime, now),
    )
    return [_node(row, data) for row in rows]


@dataclass(frozen=True)
class _Loaded:
    """The rows of all queries, by node id, by GPU UUID, or by holder."""

    now: datetime
    uptime: ListeningWindow
    newest: Mapping[int, LatestBucket]
    devices: Mapping[int, Sequence[Gpu]]
    leases: Mapping[int, Sequence[Lease]]
    baselines: Mapping[int, Baseline]
    events: Mapping[str, Sequence[RecentEvent]]
    silences: Mapping[str, RunSilence]


def _node(node: Node, data: _Loaded) -> NodeFacts:
    vitals: Vitals = node.vitals
    rows = data.leases.get(node.pk, ())
    leases = [
        (
            lease,
            LeaseFacts(
                lease.holder,
                lease.attempt,
                lease.label,
                lease.workspace_id,
                data.silences.get(lease.holder),
            ),
        )
        for lease in rows
    ]
    lease_by_gpu = {uuid: holder for lease, holder in leases for uuid in lease.gpus}
    is_ready = status(node, data.now, data.uptime) is NodeStatus.READY
    return NodeFacts(
        pk=node.pk,
        name=node.name,
        cluster=node.cluster_id,
        is_reporting=is_ready and _is_fresh(vitals, data.now),
        silence_s=silence_s(node, data.now, data.uptime),
        is_drained=node.drained_at is not None,
        is_monitor_only=node.monitor_only,
        nvml=node.nvml,
        clock_offset_s=node.clock_offset_s,
        memory_bytes=node.memory_bytes or None,
        memory_used_bytes=vitals.get("memory_used_bytes"),
        disk_free_bytes=vitals.get("disk_free_bytes"),
        ports=baseline.port_states(data.baselines[node.pk], node),
        leases=tuple(lease for _, lease in leases),
        gpus=tuple(
            _gpu(gpu, node, lease_by_gpu.get(gpu.uuid), data) for gpu in data.devices.get(node.pk, ())
        ),
    )


def _gpu(gpu: Gpu, node: Node, lease: LeaseFacts | None, data: _Loaded) -> GpuFacts:
    vitals: Vitals = node.vitals
    heartbeat = vitals.get("gpus", {}).get(gpu.uuid, {})
    newest = data.newest.get(node.pk)
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
        lease=lease,
        mean=_numbers(heartbeat, {metric: mean for metric, (mean, _) in bucket.items()}),
        peak=_numbers(heartbeat, {metric: peak for metric, (_, peak) in bucket.items()}),
        counters=vitals.get("counters", {}).get(gpu.uuid, {}),
        processes=vitals.get("processes", {}).get(gpu.uuid, ()),
        events=data.events.get(gpu.uuid, ()),
        ecc_growth=baseline.ecc_growth(data.baselines[node.pk], gpu.uuid, data.now),
    )


def _numbers(heartbeat: Mapping[str, float], bucket: Mapping[str, float]) -> dict[str, float]:
    """Returns the numbers of the newest bucket, completed by those of the last heartbeat."""
    return {**heartbeat, **{metric: value for metric, value in bucket.items() if not math.isnan(value)}}


def _is_fresh(vitals: Vitals, now: datetime) -> bool:
    at = parse_datetime(vitals.get("at") or "")
    return at is not None and now - at <= MAX_AGE


def _baselines(rows: Collection[Node], now: datetime) -> dict[int, Baseline]:
    stored = {item.pk: item for item in Baseline.objects.all()}
    baselines, changed = {}, []
    for node in rows:
        baselines[node.pk], is_new = baseline.refresh(stored.get(node.pk), node, now)
        if is_new:
            changed.append(baselines[node.pk])
    if changed:
        with transaction.atomic():
            # Another worker may store the baseline of the same node at the same time.
            Baseline.objects.bulk_create(
                changed,
                update_conflicts=True,
                unique_fields=["node"],
                update_fields=["ports", "ecc"],
                batch_size=200,
            )
    return baselines


def _silences(holders: Collection[str], uptime: ListeningWindow, now: datetime) -> dict[str, RunSilence]:
    """Returns the silence of each of the holders that is a run at work, as far as the hub listened: after an
    outage of the hub no run is silent until it has had time to be heard."""
    silences: dict[str, RunSilence] = {}
    if not holders:
        return silences
    for path in silence_sources.RANK_SILENCES:
        silences.update(import_string(path)(holders, now.timestamp()))
    for path in silence_sources.OTHER_SIGNS:
        for holder, seconds in import_string(path)(list(silences), now.timestamp()).items():
            silence = silences[holder]
            silences[holder] = replace(silence, silent_s=min(silence.silent_s, seconds))

    def heard_s(silent_s: float) -> float:
        return uptime.part(now - timedelta(seconds=silent_s), now).total_seconds()

    return {
        holder: RunSilence(
            heard_s(silence.silent_s),
            [replace(rank, silent_s=heard_s(rank.silent_s)) for rank in silence.ranks],
        )
        for holder, silence in silences.items()
    }


def _recent_events(now: datetime) -> dict[str, list[RecentEvent]]:
    """Returns the recent events of GPUs by UUID, including the restarts of their machines."""
    events: dict[str, list[RecentEvent]] = defaultdict(list)
    recent = NodeEvent.objects.filter(at__gt=now - EVENT_WINDOW)
    gpus = recent.filter(kind__in=tuple(GPU_KINDS)).exclude(gpu="").order_by("-pk")[:MAX_EVENTS]
    gpus_by_node: dict[int, set[str]] = defaultdict(set)
    for event in gpus:
        events[event.gpu].append(
            RecentEvent(GPU_KINDS[event.kind], (now - event.at).total_seconds(), event.code)
        )
        gpus_by_node[event.node_id].add(event.gpu)
    restarts = (
        recent.filter(node__in=gpus_by_node, kind="restarted").values_list("node_id", "at")
        if gpus_by_node
        else ()
    )
    for node_id, at in restarts:
        for uuid in gpus_by_node[node_id]:
            events[uuid].append(RecentEvent("restarted", (now - at).total_seconds()))
    return events
