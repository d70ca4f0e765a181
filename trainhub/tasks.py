"""Housekeeping of the installation as a whole."""

from __future__ import annotations

from celery import shared_task
from django.core.management import call_command


@shared_task(ignore_result=True)
def clear_sessions() -> None:
    call_command("clearsessions")
