"""Celery tasks of the registry. Each calls one function, and may run twice without harm."""

from __future__ import annotations

from celery import shared_task

from registry.exports import completion
from registry.mlflow import deferred_files
from registry.scanning import versions


@shared_task(ignore_result=True)
def scan_version(version: int) -> None:
    versions.scan(version)


@shared_task(ignore_result=True)
def fill_versions(model: str) -> None:
    deferred_files.fill_all(model)


@shared_task(ignore_result=True)
def scan_missed() -> None:
    deferred_files.fill_all()
    versions.scan_missed()


@shared_task(ignore_result=True)
def settle_exports() -> None:
    completion.settle_all()
