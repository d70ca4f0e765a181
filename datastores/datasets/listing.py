"""Lists the files of versions of datasets: the worker's part, which stores the list or why there is none."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from datastores.datasets.file_list import compare, pack_starts
from datastores.models import DatasetVersion, Manifest
from datastores.states import MOUNTED_KINDS, ListingState
from datastores.store_process import StoreProcess, StoreProcessFailed
from datastores.store_secret import store_secret
from trainhub_launch.data.probe_work import LIST
from trainhub_launch.data.stores import SignIn
from workspaces.secrets import uses
from workspaces.secrets.errors import SecretsUnavailable
from workspaces.stored_files import blobs
from workspaces.stored_files.blob_writer import store_file

log = logging.getLogger(__name__)
MAX_AT_ONCE = 2
MAX_ATTEMPTS = 3
# A million files take some two minutes.
MAX_S = 3600.0
TOO_LONG = (
    f"Its files were not listed within {MAX_S / 3600:.0f} h: name a folder below it, or pack them into "
    "archives."
)
# The process says every other second how far it is; its worker has died if it has not for longer.
ABANDONED_AFTER = timedelta(seconds=60)
MAX_FAILURE = 2000
OWN_FAULT = "The hub itself failed at this version; an operator finds the reason in its log."

_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


class ListingFailed(Exception):
    """There is no list; the message is a sentence for whoever asked for it."""


class VersionGone(Exception):
    """The dataset was deleted meanwhile."""


def list_version(version_id: int) -> None:
    """Lists the version, unless that is done or in progress, and then those that wait meanwhile. Does
    nothing if this process lists enough others: one of those threads takes it next."""
    if not _slots.acquire(blocking=False):
        return
    try:
        _take_and_list(version_id)
        while (waiting := _next_due()) is not None:
            _take_and_list(waiting)
    finally:
        _slots.release()


def list_missed() -> None:
    """Lists versions whose message was lost, or whose worker has died."""
    waiting = _next_due()
    if waiting is not None:
        list_version(waiting)


def _next_due() -> int | None:
    due = DatasetVersion.objects.filter(_is_due(), by_hub(), state=ListingState.LISTING)
    return due.order_by("created_at").values_list("pk", flat=True).first()


def by_hub() -> Q:
    """Returns the condition that the hub can list a version by itself. Nodes list the others."""
    return ~(Q(dataset__datastore__kind__in=MOUNTED_KINDS) | Q(dataset__datastore__sign_in=SignIn.NODE))


def _is_due() -> Q:
    return Q(seen_at=None) | Q(seen_at__lt=timezone.now() - ABANDONED_AFTER)


def _take_and_list(version_id: int) -> None:
    now = timezone.now()
    # Of two workers, only the one that changes the row lists the version.
    waiting = DatasetVersion.objects.filter(_is_due(), by_hub(), pk=version_id, state=ListingState.LISTING)
    if not waiting.update(begun_at=now, seen_at=now, attempts=F("attempts") + 1):
        return
    version = DatasetVersion.objects.select_related(
        "dataset__workspace", "dataset__datastore", "created_by"
    ).get(pk=version_id)
    try:
        _list(version)
    except VersionGone:
        return
    except ListingFailed as error:
        fail(version, str(error))
    except Exception:
        log.exception("Listing version %d of a dataset failed", version_id)
        fail(version, OWN_FAULT)


def fail(version: DatasetVersion, sentence: str) -> None:
    """Ends the listing, unless it has ended, with the sentence why there is no list."""
    DatasetVersion.objects.filter(pk=version.pk, state=ListingState.LISTING).update(
        state=ListingState.FAILED, failure=sentence[:MAX_FAILURE], ended_at=timezone.now()
    )


def _list(version: DatasetVersion) -> None:
    if version.attempts > MAX_ATTEMPTS:
        raise ListingFailed("The hub was interrupted each time it listed the files. Refresh the dataset.")
    dataset = version.dataset
    secret = _secret(version)
    output = blobs.part_path()
    request = {"work": LIST, "path": version.full_path, "secret": secret, "output": str(output)}
    try:
        done = StoreProcess(dataset.datastore.store, request, partial(_note, version)).run(MAX_S, TOO_LONG)
        store_list(version, done, output)
    except StoreProcessFailed as error:
        raise ListingFailed(str(error) or OWN_FAULT) from error
    finally:
        output.unlink(missing_ok=True)


def _note(version: DatasetVersion, files: int, size: int) -> None:
    if not note_progress(version.pk, files, size):
        raise VersionGone


def note_progress(version_id: int, files: int, size: int) -> bool:
    """Notes how many files are listed up to now. Returns False if the version is not listed any more."""
    rows = DatasetVersion.objects.filter(pk=version_id, state=ListingState.LISTING)
    return bool(rows.update(seen_at=timezone.now(), files=files, bytes=size))


def _secret(version: DatasetVersion) -> str:
    subject_of_use = f"{version.dataset.name} {version.number}"
    try:
        return store_secret(version.dataset.datastore, uses.DATASET, subject_of_use, version.created_by)
    except SecretsUnavailable as error:
        raise ListingFailed(f"{error.message[:1].upper()}{error.message[1:]}.") from error


def store_list(version: DatasetVersion, done: Mapping[str, Any], output: Path) -> None:
    """Stores the finished list at `output`, which is deleted, and makes the version ready unless it is that
    or has failed. `done`: its number of files, their bytes, where its members begin, and whether it is of one
    file alone."""
    size = output.stat().st_size
    starts = pack_starts(done["starts"])
    manifest = Manifest(version=version, sha256=store_file(output), size_bytes=size, starts=starts)
    before = version.dataset.versions.filter(state=ListingState.READY, number__lt=version.number)
    earlier = before.select_related("manifest").order_by("-number").first()
    differences = compare(earlier, manifest).to_json() if earlier is not None else {}
    with transaction.atomic():
        ready = DatasetVersion.objects.filter(pk=version.pk, state=ListingState.LISTING).update(
            state=ListingState.READY,
            files=done["files"],
            bytes=done["bytes"],
            is_file=done["is_file"],
            differences=differences,
            ended_at=timezone.now(),
        )
        if ready:
            manifest.save()
