"""Signs of life: what reports tell again and again (when a node was heard, its latest numbers), written for all nodes at once.

Pages and the watch over silent nodes read rows, which are a second behind here; whoever takes reports reads `latest`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import connection, transaction

from clusters import rounds
from clusters.models import Node
from live.fanout import is_watched
from live.publish import publish
from live.topics import node_topic

MOST_VITALS = 250
"""Rows of numbers written in one round. Where more nodes report, each one's are written every few seconds, in turn."""
FORGOTTEN_AFTER = timedelta(seconds=30)
"""A row that cannot be written for so long is gone."""


@dataclass(frozen=True)
class Sign:
    name: str
    at: datetime
    vitals: dict[str, Any] | None


_lock = threading.Lock()
_pending: dict[int, Sign] = {}
_latest: dict[int, datetime] = {}


def note(node: Node, at: datetime, vitals: dict[str, Any] | None) -> None:
    """The node was heard, and how it does; `vitals` None: it did not say."""
    if not rounds.are_going():
        _write_one(node, at, vitals)
        return
    with _lock:
        before = _pending.get(node.pk)
        if before is None or before.at <= at:
            _latest[node.pk] = at
            kept = before.vitals if before is not None and vitals is None else vitals
            _pending[node.pk] = Sign(node.name, at, kept)


def latest(node_id: int) -> datetime | None:
    """When this process has heard the node last, written or not."""
    return _latest.get(node_id)


def write() -> None:
    """A round: everything noted since the last one, the nodes whose numbers wait longest first."""
    with _lock:
        taken = dict(_pending)
        _pending.clear()
    if not taken:
        return
    told = [key for key, sign in taken.items() if sign.vitals is not None]
    first = set(told[:MOST_VITALS])
    written: set[int] = set()
    try:
        with transaction.atomic():
            for part in (sorted(first), sorted(taken.keys() - first)):
                written |= _write(part, taken, with_vitals=part != [] and part[0] in first)
    finally:
        _keep_rest(taken, written, first)
    for key in written & first:
        if is_watched(node_topic(key)):
            publish(node_topic(key), {"type": "node.changed", "node": taken[key].name})


def restart() -> None:
    """Remember nothing, as a process does that has just begun."""
    with _lock:
        _pending.clear()
        _latest.clear()


def _keep_rest(taken: dict[int, Sign], written: set[int], with_vitals: set[int]) -> None:
    """What was not written goes first next time, behind whatever has come since."""
    if not taken:
        return
    newest = max(sign.at for sign in taken.values())
    with _lock:
        since = dict(_pending)
        _pending.clear()
        for key, sign in taken.items():
            left = sign.vitals is not None and key not in with_vitals
            if (left or key not in written) and newest - sign.at < FORGOTTEN_AFTER:
                _pending[key] = sign
        for key, sign in since.items():
            before = _pending.get(key)
            kept = before.vitals if sign.vitals is None and before is not None else sign.vitals
            _pending[key] = replace(sign, vitals=kept)


def _write_one(node: Node, at: datetime, vitals: dict[str, Any] | None) -> None:
    Node.objects.filter(pk=node.pk).update(last_report_at=at, **({} if vitals is None else {"vitals": vitals}))
    publish(node_topic(node.pk), {"type": "node.changed", "node": node.name})


def _write(keys: list[int], signs: dict[int, Sign], *, with_vitals: bool) -> set[int]:
    """Those of `keys` whose rows were there to be written; none is turned back by an older sign."""
    if not keys:
        return set()
    ats = [signs[key].at for key in keys]
    texts = [orjson.dumps(signs[key].vitals).decode() for key in keys] if with_vitals else []
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_postgresql(with_vitals=with_vitals), [keys, ats, *([texts] if with_vitals else [])])
            return {row[0] for row in cursor.fetchall()}
        told = [connection.ops.adapt_datetimefield_value(at) for at in ats]
        rows = zip(told, *([texts] if with_vitals else []), keys, told, strict=True)
        cursor.executemany(_others(with_vitals=with_vitals), list(rows))
    return set(keys)


def _postgresql(*, with_vitals: bool) -> str:
    # Rows that somebody else holds are left for the next round: waiting for many, one after another, ends in deadlocks.
    return f"""
        WITH told AS (SELECT * FROM unnest(%s::bigint[], %s::timestamptz[]{", %s::text[]" if with_vitals else ""})
                      AS told (id, at{", vitals" if with_vitals else ""})),
             free AS MATERIALIZED (SELECT id FROM clusters_node WHERE id IN (SELECT id FROM told)
                                   ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
        UPDATE clusters_node SET last_report_at = told.at{", vitals = told.vitals::jsonb" if with_vitals else ""}
        FROM told JOIN free USING (id)
        WHERE clusters_node.id = told.id AND (last_report_at IS NULL OR last_report_at <= told.at)
        RETURNING clusters_node.id
    """  # noqa: S608 - of our own words alone


def _others(*, with_vitals: bool) -> str:
    return f"""
        UPDATE clusters_node SET last_report_at = %s{", vitals = %s" if with_vitals else ""}
        WHERE id = %s AND (last_report_at IS NULL OR last_report_at <= %s)
    """  # noqa: S608 - of our own words alone
