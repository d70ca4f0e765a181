"""Celery tasks of the hub's worker. Each calls one function, and may run twice without harm."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from workspaces.authentication import login_throttle
from workspaces.notifications import delivery


@shared_task(ignore_result=True)
def deliver() -> None:
    delivery.tick(timezone.now())


@shared_task(ignore_result=True)
def forget_deliveries() -> None:
    delivery.forget(timezone.now())


@shared_task(ignore_result=True)
def forget_sign_in_attempts() -> None:
    login_throttle.forget_old()
