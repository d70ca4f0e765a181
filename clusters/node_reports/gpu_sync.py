"""A node's GPUs as rows: which it tells of, and which of them are its own."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q

from clusters.models import Gpu, Node
from trainhub_launch.machine import GPU_LOST
from workspaces import background_loop, process_caches

log = logging.getLogger(__name__)
LOOK_EVERY_S = 10.0
FIELDS = ("index", "name", "memory_bytes", "state", "error", "parent", "profile", "mig")
GpuFieldsByUuid = dict[str, dict[str, Any]]
"""UUID -> the fields of Gpu (`inventory.devices`)."""


@dataclass(frozen=True)
class _Stored:
    told: GpuFieldsByUuid
    elsewhere: list[str]
    own: frozenset[str]


_NONE = _Stored({}, [], frozenset())
_lock = threading.Lock()
_stored: dict[int, _Stored] = {}
_looked_at = 0.0


def are_stored(node: Node, told: GpuFieldsByUuid) -> bool:
    """Whether the rows say just this, as far as this process knows without asking. GPUs in dispute are looked
    at each time."""
    known = _known(node)
    return known is not None and not known.elsewhere and known.told == told and background_loop.is_running()


def own_uuids(node: Node) -> frozenset[str]:
    """The UUIDs, those of absent devices too, whose numbers are this node's to tell."""
    known = _known(node)
    if known is not None and background_loop.is_running():
        return known.own
    return frozenset(Gpu.objects.filter(node=node).values_list("uuid", flat=True))


def unreachable_gpus(node: Node, why: str) -> GpuFieldsByUuid:
    """The GPUs that the node had, where it cannot read its driver and so tells of none: they are out of
    reach, not removed."""
    return {
        gpu.uuid: {
            "index": gpu.index,
            "name": gpu.name,
            "memory_bytes": gpu.memory_bytes,
            "state": GPU_LOST,
            "error": why,
        }
        for gpu in Gpu.objects.filter(node=node, present=True)
    }


def store(node: Node, told: GpuFieldsByUuid, is_alive: Callable[[Node], bool]) -> list[str]:
    """Returns the UUIDs that another living node reports as its own; a device has one owner at a time."""
    # One query, and none that writes, while nothing changes.
    known = {gpu.uuid: gpu for gpu in Gpu.objects.filter(Q(uuid__in=told) | Q(node=node))}
    elsewhere = []
    Gpu.objects.bulk_create(
        [Gpu(uuid=uuid, node=node, **fields) for uuid, fields in told.items() if uuid not in known]
    )
    for uuid, fields in told.items():
        gpu = known.get(uuid)
        if gpu is None:
            continue
        if gpu.node_id != node.pk and gpu.present and is_alive(gpu.node):
            elsewhere.append(uuid)
        elif (
            gpu.node_id != node.pk
            or not gpu.present
            or any(getattr(gpu, name) != value for name, value in fields.items())
        ):
            Gpu.objects.filter(pk=uuid).update(node=node, present=True, **fields)
    gone = [uuid for uuid, gpu in known.items() if gpu.present and uuid not in told]
    if gone:
        Gpu.objects.filter(pk__in=gone).update(present=False)
    if elsewhere and elsewhere != node.vitals.get("gpus_elsewhere"):
        log.warning("Node %s reports GPUs that belong to another node: %s", node.name, ", ".join(elsewhere))
    mine = {uuid for uuid, gpu in known.items() if gpu.node_id == node.pk} | told.keys()
    transaction.on_commit(
        partial(_remember, node.pk, _Stored(told, elsewhere, frozenset(mine.difference(elsewhere))))
    )
    return elsewhere


def refresh() -> None:
    """A round, and not in each: what the rows of all nodes say, whoever wrote them."""
    global _looked_at  # noqa: PLW0603 - of the one thread that goes rounds
    begun = time.monotonic()
    if _looked_at and begun - _looked_at < LOOK_EVERY_S:
        return
    with _lock:
        before = dict(_stored)
    told: defaultdict[int, GpuFieldsByUuid] = defaultdict(dict)
    own: defaultdict[int, set[str]] = defaultdict(set)
    for uuid, node_id, present, *values in Gpu.objects.values_list("uuid", "node_id", "present", *FIELDS):
        own[node_id].add(uuid)
        if present:
            told[node_id][uuid] = dict(zip(FIELDS, values, strict=True))
    with _lock:
        for node_id in own.keys() | before.keys():
            known = before.get(node_id)
            # What a report has changed meanwhile is newer; a dispute lasts until the node tells otherwise.
            if _stored.get(node_id) is known and (known is None or not known.elsewhere):
                _stored[node_id] = _Stored(told[node_id], [], frozenset(own[node_id]))
    _looked_at = begun


def _known(node: Node) -> _Stored | None:
    """Whoever was not seen among all rows has none."""
    return _stored.get(node.pk, _NONE if _looked_at else None)


def _remember(node_id: int, stored: _Stored) -> None:
    with _lock:
        _stored[node_id] = stored


@process_caches.register
def clear_cache() -> None:
    global _looked_at  # noqa: PLW0603 - guarded by the lock
    with _lock:
        _stored.clear()
        _looked_at = 0.0
