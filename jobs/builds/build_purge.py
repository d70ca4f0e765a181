"""Deletes old builds and their logs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from django.conf import settings

from jobs.builds.models import EnvironmentBuild, is_build_id
from jobs.logs import log_store

KEPT_FOR = timedelta(days=90)
BATCH = 500


def purge_builds(now: datetime) -> None:
    """Deletes builds that ended long ago, and the logs of all that are no more: they also go with their
    environment, node or workspace."""
    EnvironmentBuild.objects.filter(settled_at__lt=now - KEPT_FOR).delete()
    stored = _stored_builds()
    while names := list(islice(stored, BATCH)):
        existing = set(EnvironmentBuild.objects.filter(pk__in=names).values_list("pk", flat=True))
        for name in names:
            if name not in existing:
                log_store.remove_run(name)


def _stored_builds() -> Iterator[str]:
    folder = Path(settings.DATA_DIR) / "runs"
    if folder.is_dir():
        yield from (entry.name for entry in folder.iterdir() if is_build_id(entry.name))
