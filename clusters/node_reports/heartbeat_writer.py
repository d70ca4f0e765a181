"""Signs of life: what reports tell again and again (when a node was heard, its latest numbers), written for
all nodes at once.

Pages and the watch over silent nodes read rows, which are a second behind here; whoever takes reports reads
`latest`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import connection, transaction

from clusters import journal
from clusters.models import Node
from clusters.node_reports.node_events import BACK
from live.fanout import is_watched
from live.publish import publish
from live.topics import node_topic
from workspaces import process_caches

MAX_VITALS = 250
"""Rows of numbers written in one round. Where more nodes report, each one's are written every few seconds, in
turn."""
FORGOTTEN_AFTER = timedelta(seconds=30)
"""A row that cannot be written for so long is gone."""


@dataclass(frozen=True)
class PendingHeartbeat:
    name: str
    at: datetime
    vitals: dict[str, Any] | None
    returned: str = ""


_lock = threading.Lock()
_pending: dict[int, PendingHeartbeat] = {}
_latest: dict[int, datetime] = {}


def record(node: Node, at: datetime, vitals: dict[str, Any] | None, *, returned: str = "") -> None:
    """The node was heard, and how it does; `vitals` None: it did not say. `returned`: what its journal says
    of its return."""
    with _lock:
        before = _pending.get(node.pk, PendingHeartbeat(node.name, at, None))
        if before.at <= at:
            _latest[node.pk] = at
            kept = before.vitals if vitals is None else vitals
            _pending[node.pk] = PendingHeartbeat(node.name, at, kept, returned or before.returned)


def last_heartbeat_at(node_id: int) -> datetime | None:
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
    first = set(told[:MAX_VITALS])
    written: set[int] = set()
    try:
        with transaction.atomic():
            for part in (sorted(first), sorted(taken.keys() - first)):
                written |= _write(part, taken, with_vitals=part != [] and part[0] in first)
            journal.note_all(
                BACK, {key: (taken[key].returned, taken[key].at) for key in written if taken[key].returned}
            )
    finally:
        _keep_rest(taken, written, first)
    for key in written & first:
        if is_watched(node_topic(key)):
            publish(node_topic(key), {"type": "node.changed", "node": taken[key].name})


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _pending.clear()
        _latest.clear()


def _keep_rest(taken: dict[int, PendingHeartbeat], written: set[int], with_vitals: set[int]) -> None:
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
                _pending[key] = replace(sign, returned="") if key in written else sign
        for key, sign in since.items():
            before = _pending.get(key)
            if before is not None:
                _pending[key] = PendingHeartbeat(
                    sign.name, sign.at, sign.vitals or before.vitals, sign.returned or before.returned
                )
            else:
                _pending[key] = sign


def _write(keys: list[int], signs: dict[int, PendingHeartbeat], *, with_vitals: bool) -> set[int]:
    """Those of `keys` whose rows were there to be written; none is turned back by an older sign."""
    if not keys:
        return set()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # One document: lists of texts are quoted by psycopg in Python, which costs more than all else
            # here.
            told = [
                {"id": key, "at": signs[key].at, **({"vitals": signs[key].vitals} if with_vitals else {})}
                for key in keys
            ]
            cursor.execute(_postgresql(with_vitals=with_vitals), [orjson.dumps(told).decode()])
            return {row[0] for row in cursor.fetchall()}
        ats = [connection.ops.adapt_datetimefield_value(signs[key].at) for key in keys]
        texts = [[orjson.dumps(signs[key].vitals).decode() for key in keys]] if with_vitals else []
        cursor.executemany(_others(with_vitals=with_vitals), list(zip(ats, *texts, keys, ats, strict=True)))
    return set(keys)


def _postgresql(*, with_vitals: bool) -> str:
    # Rows that somebody else holds are left for the next round: waiting for many, one after another, ends in
    # deadlocks.
    return f"""
        WITH told AS (SELECT * FROM json_to_recordset(%s::json)
                      AS told (id bigint, at timestamptz{", vitals jsonb" if with_vitals else ""})),
             free AS MATERIALIZED (SELECT id FROM clusters_node WHERE id IN (SELECT id FROM told)
                                   ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
        UPDATE clusters_node SET last_report_at = told.at{", vitals = told.vitals" if with_vitals else ""}
        FROM told JOIN free USING (id)
        WHERE clusters_node.id = told.id AND (last_report_at IS NULL OR last_report_at <= told.at)
        RETURNING clusters_node.id
    """  # noqa: S608 - of our own words alone


def _others(*, with_vitals: bool) -> str:
    return f"""
        UPDATE clusters_node SET last_report_at = %s{", vitals = %s" if with_vitals else ""}
        WHERE id = %s AND (last_report_at IS NULL OR last_report_at <= %s)
    """  # noqa: S608 - of our own words alone
