"""Which bytes of a log come late: written while their node could not reach the hub, so that their arrival
tells little."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta

from clusters.models import Node
from jobs.node_api.node_assignments import Holding, Key
from trainhub_launch.report import Report

CUT_OFF_AFTER = timedelta(seconds=2.5)
"""A node that holds a run reports every second; whoever was silent for longer was cut off, or the hub was
down."""

_lock = threading.Lock()
_late_until: dict[tuple[str, int, str], int] = {}


def hear(node: Node, report: Report, held: Mapping[Key, Holding], now: datetime) -> None:
    """Note, before anything of the report is taken, what the node's logs held when it was heard again."""
    last = node.last_report_at
    if last is None or now - last <= CUT_OFF_AFTER:
        return
    for fact in report.attempts:
        holding = held.get((fact.run, fact.attempt))
        if holding is None or holding.claimed_at is None or holding.claimed_at >= last:
            continue  # an idle node reports less often
        for told, size in fact.logs.items():
            name = holding.stored_name(told)
            if name is not None and size:
                with _lock:
                    _late_until[(fact.run, fact.attempt, name)] = size


def is_late(run_id: str, attempt: int, name: str, offset: int) -> bool:
    """Whether the byte at `offset`, stored now, had been written before its node was heard again."""
    if not _late_until:
        return False
    until = _late_until.get((run_id, attempt, name), 0)
    if until and offset >= until:
        with _lock:
            _late_until.pop((run_id, attempt, name), None)
    return offset < until


def forget(run_id: str, attempt: int) -> None:
    with _lock:
        for key in [key for key in _late_until if key[:2] == (run_id, attempt)]:
            del _late_until[key]


def restart() -> None:
    """Remember nothing, as a process does that has just begun."""
    with _lock:
        _late_until.clear()
