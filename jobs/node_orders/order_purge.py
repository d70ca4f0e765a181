"""Deletes old orders that are no runs, and their logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from django.conf import settings

from jobs.builds.models import is_build_id
from jobs.data_orders.models import is_data_order_id
from jobs.logs import log_store
from jobs.models import DataOrder, EnvironmentBuild
from jobs.node_orders.work_order import WorkOrder

KEPT_FOR = timedelta(days=90)
BATCH = 500
KINDS: tuple[tuple[type[WorkOrder], Callable[[str], bool]], ...] = (
    (EnvironmentBuild, is_build_id),
    (DataOrder, is_data_order_id),
)


def purge_orders(now: datetime) -> None:
    """Deletes orders that ended long ago, and the logs of all that are no more: they also go with what they
    were for, their node or their workspace."""
    for kind, is_id in KINDS:
        kind.rows().filter(settled_at__lt=now - KEPT_FOR).delete()
        stored = _stored(is_id)
        while names := list(islice(stored, BATCH)):
            existing = set(kind.rows().filter(pk__in=names).values_list("pk", flat=True))
            for name in names:
                if name not in existing:
                    log_store.remove_run(name)


def _stored(is_id: Callable[[str], bool]) -> Iterator[str]:
    folder = Path(settings.DATA_DIR) / "runs"
    if folder.is_dir():
        yield from (entry.name for entry in folder.iterdir() if is_id(entry.name))
