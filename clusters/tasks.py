"""Celery tasks of the hub's worker. Each calls one function and is idempotent."""

from __future__ import annotations

import time

from celery import shared_task
from django.utils import timezone

from clusters import brokers
from clusters.agent_upgrades import rollouts
from clusters.alerts import alert_store
from clusters.allocations import relays
from clusters.provisioning import reconciler
from clusters.telemetry import compaction, expiry
from workspaces.servers.exclusive_work import only_once


@shared_task(ignore_result=True)
def mend_brokers() -> None:
    brokers.repair_users()


@shared_task(ignore_result=True)
def tend_machines() -> None:
    reconciler.reconcile()


@shared_task(ignore_result=True)
def tend_relays() -> None:
    relays.tend()


@shared_task(ignore_result=True)
def tend_rollouts() -> None:
    rollouts.tend_rollouts(timezone.now())


@shared_task(ignore_result=True)
def fold_telemetry() -> None:
    compaction.fold_due_nodes(time.time())


@shared_task(ignore_result=True)
def expire_telemetry() -> None:
    expiry.expire(time.time())


@shared_task(ignore_result=True)
def evaluate_alerts() -> None:
    # An evaluation that takes longer than the interval must not occupy several threads.
    with only_once("evaluate-alerts") as may:
        if may:
            alert_store.evaluate_all(timezone.now())


@shared_task(ignore_result=True)
def forget_alerts() -> None:
    alert_store.delete_old(timezone.now())
