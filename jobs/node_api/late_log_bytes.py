"""Determines which bytes of a node's logs arrive late: those written while the node could not reach the hub.
Their time of arrival does not show when they were written."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta

from clusters.models import Node
from jobs.node_api.assignment import Assignment, Key
from trainhub_launch.report import Report

# A node with a run reports every second. After a longer silence it was cut off, or the hub was down.
CUT_OFF_AFTER = timedelta(seconds=2.5)


class LateLogBytes:
    """Stores for each log of one node the offset up to which its bytes are late."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._late_until: dict[tuple[str, int, str], int] = {}

    def observe(
        self, node: Node, report: Report, assignments: Mapping[Key, Assignment], now: datetime
    ) -> None:
        """Records the sizes of the node's logs when it reports again after a silence. Must be called before
        anything else of the report is ingested."""
        last = node.last_report_at
        if last is None or now - last <= CUT_OFF_AFTER:
            return
        for fact in report.attempts:
            assignment = assignments.get((fact.run, fact.attempt))
            if assignment is None or assignment.claimed_at is None or assignment.claimed_at >= last:
                continue  # an idle node reports less often
            for node_name, size in fact.logs.items():
                name = assignment.stored_name(node_name)
                # Bytes up to the size that the node reports now were written while nobody could tell when.
                if name is not None and size:
                    with self._lock:
                        self._late_until[(fact.run, fact.attempt, name)] = size

    def is_late(self, run_id: str, attempt: int, name: str, offset: int) -> bool:
        """Returns whether the node wrote the byte at `offset`, which is stored now, before it reported again
        after the silence."""
        if not self._late_until:
            return False
        until = self._late_until.get((run_id, attempt, name), 0)
        if until and offset >= until:
            with self._lock:
                self._late_until.pop((run_id, attempt, name), None)
        return offset < until

    def forget(self, run_id: str, attempt: int) -> None:
        with self._lock:
            for key in [key for key in self._late_until if key[:2] == (run_id, attempt)]:
                del self._late_until[key]
