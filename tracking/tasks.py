"""Celery tasks; each calls one function and may run twice."""

from __future__ import annotations

from celery import shared_task

from tracking.events import pending_attempts
from tracking.metrics import compaction
from tracking.usage import accounting


@shared_task(ignore_result=True)
def fold_metrics() -> None:
    compaction.fold_quiet()


@shared_task(ignore_result=True)
def account_usage() -> None:
    accounting.account_recent()


@shared_task(ignore_result=True)
def account_past_usage() -> None:
    accounting.account_history()


@shared_task(ignore_result=True)
def read_events() -> None:
    pending_attempts.read_pending()
    compaction.fold_due()
