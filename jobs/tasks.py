"""Doorways of the hub's worker: each calls one function, and may be run twice without harm."""

from __future__ import annotations

from celery import shared_task

from jobs import curves, launching, losing, reaper


@shared_task(ignore_result=True)
def launch_run(run_id: str) -> None:
    launching.launch(run_id)


@shared_task(ignore_result=True)
def launch_queued() -> None:
    launching.launch_queued()


@shared_task(ignore_result=True)
def reap() -> None:
    reaper.tick()


@shared_task(ignore_result=True)
def watch() -> None:
    losing.watch()


@shared_task(ignore_result=True)
def keep_curves() -> None:
    curves.keep_ended()
