"""Celery tasks: each calls one function, and may run twice without harm."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings
from django.utils.module_loading import import_string

from clusters.node_facts import REUSED_FOR_S
from jobs import run_curves
from jobs.builds import build_lifecycle
from jobs.data_orders import data_lifecycle
from jobs.hub_files import fetching
from jobs.models import LogTarget
from jobs.node_listings import listing_progress
from jobs.quotas import disk_use
from jobs.recovery import abandoned_runs, node_loss, outside_cancel, outside_ends, reaper
from jobs.scheduling import run_actions
from jobs.version_builds import progress


@shared_task(ignore_result=True)
def launch_run(run_id: str) -> None:
    """Sent when a run is submitted or queued again. `reap` launches it if this message is lost."""
    run_actions.launch(run_id, REUSED_FOR_S)


@shared_task(ignore_result=True)
def launch_queued() -> None:
    """Sent when GPUs or process slots become free."""
    run_actions.launch_queued()


@shared_task(ignore_result=True)
def send_trace(run_id: str) -> None:
    """Sent when a run is over, where traces are wanted."""
    import_string("jobs.traces.otlp.send_run_trace")(run_id)


@shared_task(ignore_result=True)
def offer_build(node: int) -> None:
    """Sent when a build is ordered, and when one has ended. `reap` offers it if this message is lost."""
    build_lifecycle.offer_next(node)


@shared_task(ignore_result=True)
def offer_data_orders(node: int) -> None:
    """Sent when a node is to read a datastore, and when that has ended. `reap` offers it if this message is
    lost."""
    data_lifecycle.offer_next(node)


@shared_task(ignore_result=True)
def advance_listing(version: int) -> None:
    """Sent when a node is to list the files of a dataset, and when that has ended. `reap` does the same if
    this message is lost."""
    listing_progress.continue_listing(version)


@shared_task(ignore_result=True)
def advance_version(version: int) -> None:
    """Sent when a node is to make a version, and when its build has ended. `reap` does the same if this
    message is lost."""
    progress.continue_version(version)


@shared_task(ignore_result=True)
def fetch_files() -> None:
    """Sent when a version is locked, and when somebody wants its files on the hub; runs each minute, too."""
    fetching.start_fetching()


@shared_task(ignore_result=True)
def reap() -> None:
    reaper.check_runs()


@shared_task(ignore_result=True)
def end_abandoned_runs() -> None:
    abandoned_runs.end_abandoned()


@shared_task(ignore_result=True)
def watch() -> None:
    node_loss.check_silent_nodes()


@shared_task(ignore_result=True)
def cancel_outside(run_id: str) -> None:
    """Sent when a run is canceled before a node works on it. `tend_backends` does the same if this message is
    lost."""
    outside_cancel.leave_queue(run_id)


@shared_task(ignore_result=True)
def tend_backends() -> None:
    outside_ends.tend_backends()


@shared_task(ignore_result=True)
def keep_curves() -> None:
    run_curves.store_ended_curves()


@shared_task(ignore_result=True)
def ship_logs() -> None:
    if settings.LOG_DESTINATION is not None or LogTarget.objects.exists():
        # Imported only here: what it needs takes memory, which a hub without log systems saves.
        import_string("jobs.log_shipping.rounds.ship_due")()


@shared_task(ignore_result=True)
def archive_logs() -> None:
    if settings.BLOB_STORE is not None:
        # As above: most hubs keep their logs on the disk.
        import_string("jobs.log_archive.archive_round.archive_due")()


@shared_task(ignore_result=True)
def measure_disk() -> None:
    disk_use.measure_limited()
