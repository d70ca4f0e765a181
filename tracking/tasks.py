"""Doorways of the hub's worker: each calls one function, and may be run twice without harm."""

from __future__ import annotations

from celery import shared_task

from tracking.metrics import folding


@shared_task(ignore_result=True)
def fold_metrics() -> None:
    folding.fold_rest()
