"""Stores the GPUs that nodes report, and determines which node owns a GPU."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

from django.db import transaction
from django.db.models import Q

from clusters.models import Gpu, Node
from clusters.node_reports.inventory import GpuFields
from trainhub_launch.machine import GPU_LOST
from workspaces import background_loop, process_caches

log = logging.getLogger(__name__)
REFRESH_INTERVAL_S = 10.0
FIELDS = ("index", "name", "memory_bytes", "state", "error", "parent", "profile", "mig")
# UUID -> the fields of Gpu (`inventory.devices`).
GpuFieldsByUuid = dict[str, GpuFields]


@dataclass(frozen=True)
class _CachedGpus:
    reported: GpuFieldsByUuid
    elsewhere: list[str]
    own: frozenset[str]


_NO_GPUS = _CachedGpus({}, [], frozenset())
_lock = threading.Lock()
_cache: dict[int, _CachedGpus] = {}
_refreshed_at = 0.0


def are_stored(node: Node, reported: GpuFieldsByUuid) -> bool:
    """Returns whether the rows equal the reported GPUs, according to this process's cache; False while two
    nodes report the same GPU."""
    cached = _cached(node)
    # Without the loop nothing refreshes the cache, although other processes may change the rows.
    return (
        cached is not None
        and not cached.elsewhere
        and cached.reported == reported
        and background_loop.is_running()
    )


def own_uuids(node: Node) -> frozenset[str]:
    """Returns the UUIDs of all GPUs that the node owns, including absent ones. The node may report numbers of
    these only."""
    cached = _cached(node)
    if cached is not None and background_loop.is_running():
        return cached.own
    return frozenset(Gpu.objects.filter(node=node).values_list("uuid", flat=True))


def unreachable_gpus(node: Node, error: str) -> GpuFieldsByUuid:
    """Returns the present GPUs of the node as lost, with this error. A node that cannot read its driver
    reports no GPUs, but they were not removed."""
    return {
        gpu.uuid: {
            "index": gpu.index,
            "name": gpu.name,
            "memory_bytes": gpu.memory_bytes,
            "state": GPU_LOST,
            "error": error,
        }
        for gpu in Gpu.objects.filter(node=node, present=True)
    }


def store(node: Node, reported: GpuFieldsByUuid, is_alive: Callable[[Node], bool]) -> list[str]:
    """Stores the reported GPUs. Returns the UUIDs that belong to another living node; a device has one owner
    at a time."""
    # Without changes this takes one query and no write.
    by_uuid = {gpu.uuid: gpu for gpu in Gpu.objects.filter(Q(uuid__in=reported) | Q(node=node))}
    elsewhere = []
    Gpu.objects.bulk_create(
        [Gpu(uuid=uuid, node=node, **fields) for uuid, fields in reported.items() if uuid not in by_uuid]
    )
    for uuid, fields in reported.items():
        gpu = by_uuid.get(uuid)
        if gpu is None:
            continue
        if gpu.node_id != node.pk and gpu.present and is_alive(gpu.node):
            # Otherwise its former node is gone or no longer has it, so the device was moved to this node.
            elsewhere.append(uuid)
        elif (
            gpu.node_id != node.pk
            or not gpu.present
            or any(getattr(gpu, name) != value for name, value in fields.items())
        ):
            Gpu.objects.filter(pk=uuid).update(node=node, present=True, **fields)
    absent = [uuid for uuid, gpu in by_uuid.items() if gpu.present and uuid not in reported]
    if absent:
        Gpu.objects.filter(pk__in=absent).update(present=False)
    # Logged only when the list changes, and not with each report.
    if elsewhere and elsewhere != node.vitals.get("gpus_elsewhere"):
        log.warning("Node %s reports GPUs that belong to another node: %s", node.name, ", ".join(elsewhere))
    own = {uuid for uuid, gpu in by_uuid.items() if gpu.node_id == node.pk} | reported.keys()
    # Only after the commit: a cache that is ahead of a transaction that rolls back would never write the
    # rows.
    transaction.on_commit(
        partial(_remember, node.pk, _CachedGpus(reported, elsewhere, frozenset(own.difference(elsewhere))))
    )
    return elsewhere


def refresh() -> None:
    """Reads the rows of all nodes into the cache, at most once in REFRESH_INTERVAL_S."""
    global _refreshed_at  # noqa: PLW0603 - of the one thread that goes rounds
    started = time.monotonic()
    if _refreshed_at and started - _refreshed_at < REFRESH_INTERVAL_S:
        return
    with _lock:
        before = dict(_cache)
    fields_by_node: defaultdict[int, GpuFieldsByUuid] = defaultdict(dict)
    own_by_node: defaultdict[int, set[str]] = defaultdict(set)
    for uuid, node_id, present, *values in Gpu.objects.values_list("uuid", "node_id", "present", *FIELDS):
        own_by_node[node_id].add(uuid)
        if present:
            fields_by_node[node_id][uuid] = cast("GpuFields", dict(zip(FIELDS, values, strict=True)))
    with _lock:
        for node_id in own_by_node.keys() | before.keys():
            cached = before.get(node_id)
            # An entry that a report has replaced since the query is newer than the rows. GPUs in dispute stay
            # so until the node reports otherwise.
            if _cache.get(node_id) is cached and (cached is None or not cached.elsewhere):
                _cache[node_id] = _CachedGpus(fields_by_node[node_id], [], frozenset(own_by_node[node_id]))
    _refreshed_at = started


def _cached(node: Node) -> _CachedGpus | None:
    """Returns the cached GPUs of the node, or None before the first refresh; a node without rows has none."""
    return _cache.get(node.pk, _NO_GPUS if _refreshed_at else None)


def _remember(node_id: int, stored: _CachedGpus) -> None:
    with _lock:
        _cache[node_id] = stored


@process_caches.register
def clear_cache() -> None:
    global _refreshed_at  # noqa: PLW0603 - guarded by the lock
    with _lock:
        _cache.clear()
        _refreshed_at = 0.0
