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

from clusters import rounds
from clusters.models import Gpu, Node

log = logging.getLogger(__name__)
LOOK_EVERY_S = 10.0
Told = dict[str, dict[str, Any]]
"""UUID -> the fields of Gpu (`inventory.devices`)."""


@dataclass(frozen=True)
class _Stored:
    told: Told
    elsewhere: list[str]
    own: frozenset[str]


_lock = threading.Lock()
_stored: dict[int, _Stored] = {}
_looked_at = 0.0


def are_stored(node: Node, told: Told) -> bool:
    """Whether the rows say just this, as far as this process knows without asking. GPUs in dispute are looked at each time."""
    known = _stored.get(node.pk)
    return known is not None and not known.elsewhere and known.told == told and rounds.are_going()


def own(node: Node) -> frozenset[str]:
    """The UUIDs, those of absent devices too, whose numbers are this node's to tell."""
    known = _stored.get(node.pk)
    if known is not None and rounds.are_going():
        return known.own
    return frozenset(Gpu.objects.filter(node=node).values_list("uuid", flat=True))


def store(node: Node, told: Told, is_alive: Callable[[Node], bool]) -> list[str]:
    """Returns the UUIDs that another living node reports as its own; a device has one owner at a time."""
    # One query, and none that writes, while nothing changes.
    known = {gpu.uuid: gpu for gpu in Gpu.objects.filter(Q(uuid__in=told) | Q(node=node))}
    elsewhere = []
    for uuid, fields in told.items():
        gpu = known.get(uuid)
        if gpu is None:
            Gpu.objects.create(uuid=uuid, node=node, **fields)
        elif gpu.node_id != node.pk and gpu.present and is_alive(gpu.node):
            elsewhere.append(uuid)
        elif gpu.node_id != node.pk or not gpu.present or any(getattr(gpu, name) != value for name, value in fields.items()):
            Gpu.objects.filter(pk=uuid).update(node=node, present=True, **fields)
    gone = [uuid for uuid, gpu in known.items() if gpu.present and uuid not in told]
    if gone:
        Gpu.objects.filter(pk__in=gone).update(present=False)
    if elsewhere and elsewhere != node.vitals.get("gpus_elsewhere"):
        log.warning("Node %s reports GPUs that belong to another node: %s", node.name, ", ".join(elsewhere))
    mine = {uuid for uuid, gpu in known.items() if gpu.node_id == node.pk} | told.keys()
    transaction.on_commit(partial(_remember, node.pk, _Stored(told, elsewhere, frozenset(mine.difference(elsewhere)))))
    return elsewhere


def look() -> None:
    """A round, and not in each: forget every node whose rows somebody else has changed, so that its next report is compared
    with them."""
    global _looked_at  # noqa: PLW0603 - of the one thread that goes rounds
    if time.monotonic() - _looked_at < LOOK_EVERY_S:
        return
    _looked_at = time.monotonic()
    with _lock:
        known = dict(_stored)
    present: dict[int, set[str]] = defaultdict(set)
    for uuid, node_id, state in Gpu.objects.filter(present=True).values_list("uuid", "node_id", "state"):
        present[node_id].add(f"{state} {uuid}")
    for node_id, stored in known.items():
        here = {f"{fields['state']} {uuid}" for uuid, fields in stored.told.items() if uuid not in stored.elsewhere}
        if here != present[node_id]:
            with _lock:
                if _stored.get(node_id) is stored:
                    del _stored[node_id]


def _remember(node_id: int, stored: _Stored) -> None:
    with _lock:
        _stored[node_id] = stored


def restart() -> None:
    """Remember nothing, as a process does that has just begun."""
    with _lock:
        _stored.clear()
