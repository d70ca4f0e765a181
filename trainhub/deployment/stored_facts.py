"""What the database knows of an installation; nothing before its first migration."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import DatabaseError, connection

from clusters.models import Node
from jobs.models import LogTarget
from trainhub.backup.creation import BACKED_UP
from workspaces.models import AuditEvent


def all_nodes() -> Sequence[Node]:
    try:
        return list(Node.objects.order_by("name"))
    except DatabaseError:
        return ()


def log_systems() -> Sequence[LogTarget]:
    """Returns those of workspaces."""
    try:
        return list(LogTarget.objects.exclude(workspace=None).select_related("workspace").order_by("pk"))
    except DatabaseError:
        return ()


def newest_backup() -> datetime | None:
    return _newest({})


def newest_key_copy() -> datetime | None:
    """Returns when `backup --with-keys` last copied the keys."""
    return _newest({"detail__with_keys": True})


def lacks_name_index() -> bool:
    """Returns whether PostgreSQL has the table of runs, but no index of parts of their names."""
    if connection.vendor != "postgresql":
        return False
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT to_regclass('jobs_run') IS NOT NULL AND to_regclass('run_name_parts') IS NULL"
            )
            return bool(cursor.fetchone()[0])
    except DatabaseError:
        return False


def _newest(condition: dict[str, object]) -> datetime | None:
    try:
        event = AuditEvent.objects.filter(verb=BACKED_UP, **condition).order_by("-at").first()
    except DatabaseError:
        return None
    return None if event is None else event.at
