"""Celery tasks of environments. Each calls one function, and may run twice without harm."""

from __future__ import annotations

from celery import shared_task

from environments import resolver


@shared_task(ignore_result=True)
def resolve_environment(version: int) -> None:
    """Sent when a version is made. `resolve_missed` resolves it if this message is lost."""
    resolver.resolve(version)


@shared_task(ignore_result=True)
def resolve_missed() -> None:
    resolver.resolve_missed()
