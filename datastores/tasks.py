"""Celery tasks of datasets. Each calls one function, and may run twice without harm."""

from __future__ import annotations

from celery import shared_task

from datastores.datasets import listing


@shared_task(ignore_result=True)
def list_version(version: int) -> None:
    """Sent when a version is made. `list_missed` lists it if this message is lost."""
    listing.list_version(version)


@shared_task(ignore_result=True)
def list_missed() -> None:
    listing.list_missed()
