"""Purges logged models that clients have deleted, with their files; registered versions of them stay."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from jobs.retention import run_purge
from tracking.models import LoggedModel, LoggedModelFile


def purge_logged_models(now: datetime | None = None) -> None:
    due = LoggedModel.objects.filter(
        deleted_at__lte=(now or timezone.now()) - timedelta(days=settings.PURGE_DAYS)
    )
    # The files first: if the purge is interrupted, the next one still finds the models.
    run_purge.delete_rows(LoggedModelFile.objects.filter(model__in=due.values("pk")))
    run_purge.delete_rows(due)
