"""Writes the time of the last heartbeat and the latest numbers of all nodes together, once a second.

The rows are therefore up to a second behind; code that handles reports uses `last_heartbeat_at`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import orjson
from django.db import connection, transaction

from clusters import journal
from clusters.models import Node
from clusters.node_reports.inventory import Vitals
from clusters.node_reports.node_events import BACK
from live.elsewhere import is_watched_anywhere
from live.publish import publish
from live.topics import node_topic
from workspaces import process_caches

# Rows of numbers written at once. With more nodes each node's numbers are written every few seconds.
MAX_VITALS = 250
# A heartbeat whose row cannot be written for this time is dropped, because the node was deleted.
RETRY_FOR = timedelta(seconds=30)


@dataclass(frozen=True)
class PendingHeartbeat:
    name: str
    at: datetime
    vitals: Vitals | None
    returned: str = ""


_lock = threading.Lock()
_pending: dict[int, PendingHeartbeat] = {}
_last_heartbeat: dict[int, datetime] = {}


def record(node: Node, at: datetime, vitals: Vitals | None, *, returned: str = "") -> None:
    """Queues a heartbeat. `vitals` None: the report had no numbers. `returned`: the journal entry for the
    node's return from silence, or empty."""
    with _lock:
        previous = _pending.get(node.pk, PendingHeartbeat(node.name, at, None))
        # Two threads may handle reports of one node, and the older one may come here last.
        if previous.at <= at:
            _last_heartbeat[node.pk] = at
            latest_vitals = previous.vitals if vitals is None else vitals
            _pending[node.pk] = PendingHeartbeat(node.name, at, latest_vitals, returned or previous.returned)


def last_heartbeat_at(node_id: int) -> datetime | None:
    """Returns when this process last received a heartbeat of the node, written or not."""
    return _last_heartbeat.get(node_id)


def write() -> None:
    """Writes all queued heartbeats, those whose numbers wait longest first."""
    with _lock:
        batch = dict(_pending)
        _pending.clear()
    if not batch:
        return
    # Dictionaries keep the order of insertion, and `_requeue` inserts what still waits first.
    with_numbers = [key for key, sign in batch.items() if sign.vitals is not None]
    chosen = set(with_numbers[:MAX_VITALS])
    written: set[int] = set()
    try:
        with transaction.atomic():
            rows = _write(sorted(chosen), batch, with_vitals=True)
            rows |= _write(sorted(batch.keys() - chosen), batch, with_vitals=False)
            journal.record_events(
                BACK, {key: (batch[key].returned, batch[key].at) for key in rows if batch[key].returned}
            )
        # Only now: an error above undoes all of it, and then everything is queued again.
        written = rows
    finally:
        _requeue(batch, written, chosen)
    for key in written & chosen:
        if is_watched_anywhere(node_topic(key)):
            publish(node_topic(key), {"type": "node.changed", "node": batch[key].name})


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _pending.clear()
        _last_heartbeat.clear()


def _requeue(batch: dict[int, PendingHeartbeat], written: set[int], with_vitals: set[int]) -> None:
    """Queues again what was not written, in front of newer heartbeats. If a node has both, the newer values
    are queued."""
    newest = max(heartbeat.at for heartbeat in batch.values())
    with _lock:
        newer = dict(_pending)
        _pending.clear()
        for key, heartbeat in batch.items():
            is_skipped = heartbeat.vitals is not None and key not in with_vitals
            if (is_skipped or key not in written) and newest - heartbeat.at < RETRY_FOR:
                # The row is written and the return journaled already; only the numbers wait.
                _pending[key] = replace(heartbeat, returned="") if key in written else heartbeat
        for key, heartbeat in newer.items():
            previous = _pending.get(key)
            if previous is not None:
                _pending[key] = PendingHeartbeat(
                    heartbeat.name,
                    heartbeat.at,
                    heartbeat.vitals or previous.vitals,
                    heartbeat.returned or previous.returned,
                )
            else:
                _pending[key] = heartbeat


def _write(keys: list[int], heartbeats: dict[int, PendingHeartbeat], *, with_vitals: bool) -> set[int]:
    """Writes the heartbeats of these nodes, except where the row is newer. Returns the ids whose rows were
    written."""
    if not keys:
        return set()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # One JSON document: psycopg would quote lists of texts in Python, which costs more than the rest.
            documents = [
                {
                    "id": key,
                    "at": heartbeats[key].at,
                    **({"vitals": heartbeats[key].vitals} if with_vitals else {}),
                }
                for key in keys
            ]
            cursor.execute(_postgresql(with_vitals=with_vitals), [orjson.dumps(documents).decode()])
            return {row[0] for row in cursor.fetchall()}
        times = [connection.ops.adapt_datetimefield_value(heartbeats[key].at) for key in keys]
        texts = [[orjson.dumps(heartbeats[key].vitals).decode() for key in keys]] if with_vitals else []
        cursor.executemany(
            _others(with_vitals=with_vitals), list(zip(times, *texts, keys, times, strict=True))
        )
    return set(keys)


def _postgresql(*, with_vitals: bool) -> str:
    # Rows locked by other transactions are skipped and written the next time: waiting for many row locks one
    # after another ends in deadlocks.
    return f"""
        WITH beat AS (SELECT * FROM json_to_recordset(%s::json)
                      AS beat (id bigint, at timestamptz{", vitals jsonb" if with_vitals else ""})),
             free AS MATERIALIZED (SELECT id FROM clusters_node WHERE id IN (SELECT id FROM beat)
                                   ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
        UPDATE clusters_node SET last_report_at = beat.at{", vitals = beat.vitals" if with_vitals else ""}
        FROM beat JOIN free USING (id)
        WHERE clusters_node.id = beat.id AND (last_report_at IS NULL OR last_report_at <= beat.at)
        RETURNING clusters_node.id
    """  # noqa: S608 - of our own words alone


def _others(*, with_vitals: bool) -> str:
    return f"""
        UPDATE clusters_node SET last_report_at = %s{", vitals = %s" if with_vitals else ""}
        WHERE id = %s AND (last_report_at IS NULL OR last_report_at <= %s)
    """  # noqa: S608 - of our own words alone
