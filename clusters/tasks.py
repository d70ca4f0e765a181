"""Doorways of the hub's worker: each calls one function, and may be run twice without harm."""

from __future__ import annotations

from celery import shared_task

from clusters import brokers


@shared_task(ignore_result=True)
def mend_brokers() -> None:
    brokers.mend()
