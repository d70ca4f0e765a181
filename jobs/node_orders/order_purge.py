"""Deletes old orders that are no runs, and their logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from django.conf import settings

from jobs.logs import log_removal
from jobs.node_orders.work_order import WorkOrder
from workspaces.stored_files import deletions

KEPT_FOR = timedelta(days=90)
BATCH = 500


def purge_orders(kind: type[WorkOrder], is_id: Callable[[str], bool], now: datetime) -> None:
    """Deletes orders of this kind that ended long ago, and the logs of all that are no more: they also go
    with what they were for, their node or their workspace. `is_id`: whether an id is of this kind. Waits for
    the next call while a backup runs."""
    with deletions.allowed() as is_allowed:
        if is_allowed:
            kind.rows().filter(settled_at__lt=now - KEPT_FOR).delete()
            _remove_logs(kind, _stored(is_id))


def _remove_logs(kind: type[WorkOrder], stored: Iterator[str]) -> None:
    while names := list(islice(stored, BATCH)):
        existing = set(kind.rows().filter(pk__in=names).values_list("pk", flat=True))
        for name in names:
            if name not in existing:
                log_removal.remove_run(name)


def _stored(is_id: Callable[[str], bool]) -> Iterator[str]:
    folder = Path(settings.DATA_DIR) / "runs"
    if folder.is_dir():
        yield from (entry.name for entry in folder.iterdir() if is_id(entry.name))
