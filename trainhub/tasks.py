"""Celery tasks for the installation as a whole."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from datastores.uploads import sessions as dataset_uploads
from environments.packages import package_store
from jobs.builds.models import is_build_id
from jobs.data_orders.models import is_data_order_id
from jobs.models import DataOrder, EnvironmentBuild
from jobs.node_orders import order_purge
from jobs.retention import environment_purge, run_purge
from jobs.retention_rules import removal_round
from jobs.sources import snapshots
from jobs.transfer import uploads as pieces
from registry.certificates.certified_environments import certified_environments
from tracking.artifacts import uploads as parts
from tracking.logged_model_purge import purge_logged_models
from tracking.usage import accounting
from workspaces.authentication import sessions
from workspaces.object_store.rows import is_store_used
from workspaces.stored_files import blob_cache, blob_gc, blob_sealer, blob_uploads
from workspaces.stored_files.object_sweep import delete_expired_objects

log = logging.getLogger(__name__)


@shared_task(ignore_result=True)
def clear_sessions() -> None:
    call_command("clearsessions")
    sessions.delete_expired()


@shared_task(ignore_result=True)
def purge() -> None:
    """Deletes runs, models, builds and environments whose time is over. Also sent at once, by name, when an
    owner deletes a run permanently (jobs.task_messages)."""
    run_purge.purge_due(before=accounting.finalize_run)
    purge_logged_models()
    order_purge.purge_orders(EnvironmentBuild, is_build_id, timezone.now())
    order_purge.purge_orders(DataOrder, is_data_order_id, timezone.now())
    environment_purge.purge_environments(certified_environments)


@shared_task(ignore_result=True)
def apply_retention() -> None:
    """Removes what the retention rules of workspaces say. Also sent at once, by name, when somebody changes
    rules, and when there is more to do than fits into a round (jobs.task_messages)."""
    removal_round.remove_due()


@shared_task(ignore_result=True)
def seal_blobs() -> None:
    """Makes files read-only that earlier versions have stored. It has work only once after an upgrade."""
    blob_sealer.seal_old()


@shared_task(ignore_result=True)
def upload_blobs() -> None:
    """Uploads what this worker has stored, and what other processes of its server have left, to the store of
    BLOB_STORE."""
    if is_store_used():
        blob_uploads.upload_waiting()
        blob_cache.evict_copies()


@shared_task(ignore_result=True)
def sweep_blobs() -> None:
    """Deletes sources that nobody submitted, stored files that no source, output or model names, and
    abandoned uploads."""
    # At least a day: an upload comes before its run.
    snapshots.release_abandoned(timezone.now() - timedelta(days=max(1, settings.PURGE_DAYS)))
    package_store.forget_unused()
    dataset_uploads.expire_uploads()
    removed = blob_gc.sweep()
    delete_expired_objects()
    if removed:
        log.info("%s stored files that nothing names are deleted", removed)
    forgotten = pieces.sweep() + parts.sweep()
    if forgotten:
        log.info("%s uploads that nobody went on with are deleted", forgotten)
