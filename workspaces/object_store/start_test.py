"""What a start and `manage.py check` say about the store."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

from django.db import DatabaseError
from django.utils import timezone

from workspaces.object_store.client import ObjectClient, store_configuration
from workspaces.object_store.configuration import StoreConfiguration
from workspaces.object_store.errors import BucketMissing, StoreUnavailable
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.object_store.rows import waiting_objects

log = logging.getLogger(__name__)
# An upload that has waited for so long is a warning.
LATE = timedelta(minutes=10)
TEST_RETRY_S = 2.0


def require_store() -> list[str]:
    """Tests the store of BLOB_STORE. Returns warnings, as sentences. Raises StoreUnavailable if the hub
    cannot work before somebody has changed something; a store that is away for now is a warning."""
    warnings = []
    if (configuration := store_configuration()) is not None:
        try:
            # A start does not wait long for a store that is away.
            _test(ObjectClient(replace(configuration, retry_s=TEST_RETRY_S)), configuration)
        except StoreUnavailable as error:
            if error.is_lasting:
                raise
            warnings.append(f"{error} Until then new files wait on this disk, and others cannot be read.")
    return warnings


def _test(client: ObjectClient, configuration: StoreConfiguration) -> None:
    try:
        client.test_rights()
    except BucketMissing:
        if not configuration.makes_bucket:
            raise
        client.make_bucket()
        log.info("The bucket %s was made", configuration.bucket)
        client.test_rights()


def object_row_warnings() -> list[str]:
    """Returns what the rows say that an operator should know, as sentences."""
    try:
        return [*filter(None, (_files_elsewhere(), _late_uploads()))]
    except DatabaseError:
        return []  # before the first migration there is no table


def _files_elsewhere() -> str:
    configuration = store_configuration()
    rows = StoredObject.objects.filter(state=ObjectState.STORED)
    if configuration is not None:
        rows = rows.exclude(place=configuration.place)
    first = rows.first()
    if first is None:
        return ""
    used = f"BLOB_STORE={configuration.place}" if configuration else "BLOB_STORE is not set"
    return (
        f"{rows.count()} stored files are recorded in {first.place}, and {used}: those that are not on this "
        f"disk, too, cannot be read. Set BLOB_STORE={first.place} (manage.py blobs to-disk fetches them), or "
        "run `manage.py blobs forget-other-stores` if they are all here."
    )


def _late_uploads() -> str:
    late = waiting_objects().filter(waits_since__lt=timezone.now() - LATE)
    first = late.exclude(error="").first() or late.first()
    if first is None:
        return ""
    why = first.error or f"the server {first.server} does not upload them"
    return f"{late.count()} files wait for their upload for more than 10 minutes: {why}"
