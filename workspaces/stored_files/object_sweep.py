"""Deletes the objects of files that the hub has deleted, when BLOB_STORE_KEEP_DELETED_DAYS have passed."""

from __future__ import annotations

import logging

from workspaces.object_store.client import object_client
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.object_store.rows import expired_objects, is_store_used

log = logging.getLogger(__name__)
# S3 takes so many names in one request.
_AT_ONCE = 500


def delete_expired_objects() -> int:
    """Returns how many objects were deleted. What the store refuses is left to the next call."""
    count = 0
    while is_store_used() and (some := expired_objects(_AT_ONCE)):
        try:
            object_client().delete_objects([row.key for row in some])
        except StoreUnavailable as error:
            log.warning("%s objects are still in the store: %s", len(some), error)
            break
        # After the objects: what is interrupted in between is deleted once more.
        pks = [row.pk for row in some]
        count += StoredObject.objects.filter(pk__in=pks, state=ObjectState.DELETED).delete()[0]
    return count
