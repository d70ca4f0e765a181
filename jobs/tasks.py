"""Doorways of the hub's worker: each calls one function, and may be run twice without harm."""

from __future__ import annotations

from celery import shared_task

from jobs import run_curves
from jobs.recovery import node_loss, reaper
from jobs.scheduling import run_actions


@shared_task(ignore_result=True)
def launch_run(run_id: str) -> None:
    """Sent once a run is submitted, or queued again for another attempt. `reap` launches too, should the
    message be lost."""
    run_actions.launch(run_id)


@shared_task(ignore_result=True)
def launch_queued() -> None:
    """Sent once GPUs or process slots become free."""
    run_actions.launch_queued()


@shared_task(ignore_result=True)
def reap() -> None:
    reaper.check_runs()


@shared_task(ignore_result=True)
def watch() -> None:
    node_loss.check_silent_nodes()


@shared_task(ignore_result=True)
def keep_curves() -> None:
    run_curves.store_ended_curves()
