"""Celery tasks of datastores and datasets. Each calls one function, and may run twice without harm."""

from __future__ import annotations

from celery import shared_task

from datastores.datasets import listing
from datastores.testing import hub_test


@shared_task(ignore_result=True)
def list_version(version: int) -> None:
    """Sent when a version is made. `list_missed` lists it if this message is lost."""
    listing.list_version(version)


@shared_task(ignore_result=True)
def list_missed() -> None:
    hub_test.test_missed()
    listing.list_missed()


@shared_task(ignore_result=True)
def test_datastore(test: int) -> None:
    """Sent when a test begins. `list_missed` does the same if this message is lost."""
    hub_test.test_from_hub(test)
