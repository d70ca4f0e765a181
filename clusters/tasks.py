"""Doorways of the hub's worker: each calls one function, and may be run twice without harm."""

from __future__ import annotations

import time

from celery import shared_task

from clusters import brokers
from clusters.telemetry import expiry, folding


@shared_task(ignore_result=True)
def mend_brokers() -> None:
    brokers.mend()


@shared_task(ignore_result=True)
def fold_telemetry() -> None:
    folding.tick(time.time())


@shared_task(ignore_result=True)
def expire_telemetry() -> None:
    expiry.expire(time.time())
