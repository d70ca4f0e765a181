"""Doorways of the hub's worker: each calls one function, and may be run twice without harm."""

from __future__ import annotations

from celery import shared_task

from registry.exporting import settling
from registry.mlflow import pending
from registry.scanning import versions


@shared_task(ignore_result=True)
def scan_version(version: int) -> None:
    versions.scan(version)


@shared_task(ignore_result=True)
def fill_versions(model: str) -> None:
    pending.fill_all(model)


@shared_task(ignore_result=True)
def scan_missed() -> None:
    pending.fill_all()
    versions.scan_missed()


@shared_task(ignore_result=True)
def settle_exports() -> None:
    settling.settle_all()
