"""The end of files: the same rules as on the disk, and objects that go later."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.stores.s3_server import S3Server
from tests.workspaces.object_store.conftest import reconfigure
from tests.workspaces.object_store.files import objects, row_of, stored, uploaded
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.stored_files import blob_gc, blob_uploads, blobs, deletions
from workspaces.stored_files.object_sweep import delete_expired_objects

pytestmark = pytest.mark.django_db(transaction=True)


def later() -> float:
    """Returns a time at which nobody has kept what is kept now for long enough."""
    return time.time() + blob_gc.KEEP_UNNAMED_S + 60


def test_a_file_that_nothing_names_goes_after_a_week_and_its_object_after_another(store: S3Server) -> None:
    sha256 = uploaded(b"nobody's", is_local=False)
    assert blob_gc.sweep() == 0
    assert blob_gc.sweep(later()) == 1
    assert not blobs.exists(sha256)
    assert delete_expired_objects() == 0
    assert len(objects(store)) == 1
    StoredObject.objects.update(deleted_at=timezone.now() - timedelta(days=7, seconds=1))
    assert delete_expired_objects() == 1
    assert objects(store) == {}
    assert not StoredObject.objects.exists()


def test_its_copy_goes_with_it(store: S3Server) -> None:
    sha256 = uploaded(b"nobody's")
    assert blob_gc.sweep(later()) == 1
    assert not blobs.path(sha256).exists()


def test_what_somebody_holds_stays(store: S3Server) -> None:
    sha256 = uploaded(b"held", is_local=False)
    blobs.set_stored_time(sha256, time.time() - blob_gc.KEEP_UNNAMED_S - 60)
    assert blobs.hold(sha256)
    assert blob_gc.sweep() == 0
    assert blobs.exists(sha256)


def test_what_is_deleted_at_once_is_counted(store: S3Server) -> None:
    sha256 = uploaded(b"12345", is_local=False)
    before = time.time()
    assert blob_gc.free({sha256: before}, before + 2 * blob_gc.UNDER_WAY_S) == 5
    assert row_of(sha256).state == ObjectState.DELETED


def test_nothing_ends_while_a_backup_runs(store: S3Server) -> None:
    sha256 = uploaded(b"12345", is_local=False)
    with deletions.held(1):
        assert blob_gc.sweep(later()) == 0
    assert blobs.exists(sha256)


def test_the_same_bytes_stored_again_get_another_object(store: S3Server, settings: Any) -> None:
    """What deletes the old one, perhaps on another server and a moment late, cannot hit the new one."""
    sha256 = uploaded(b"again")
    assert blobs.discard(sha256, unkept_since=later()) == 5
    assert uploaded(b"again") == sha256
    reconfigure(settings, deleted_days=0.0)
    assert delete_expired_objects() == 1
    assert list(objects(store).values()) == [b"again"]
    blobs.path(sha256).unlink()
    assert blobs.exists(sha256)


def test_while_the_store_is_away_objects_are_left_for_later(store: S3Server, settings: Any) -> None:
    sha256 = uploaded(b"again")
    blobs.discard(sha256, unkept_since=later())
    reconfigure(settings, deleted_days=0.0)
    store.is_away = True
    assert delete_expired_objects() == 0
    store.is_away = False
    assert delete_expired_objects() == 1


def test_a_copy_on_another_server_is_taken_up_anew_by_who_names_it(store: S3Server) -> None:
    """The other server has deleted the file, and this one still has its copy."""
    sha256 = uploaded(b"copy")
    StoredObject.objects.update(state=ObjectState.DELETED, deleted_at=timezone.now())
    assert blobs.hold(sha256)
    blob_uploads.upload_waiting()
    assert StoredObject.objects.get(sha256=sha256, state=ObjectState.STORED)
    assert len(objects(store)) == 2


def test_a_copy_that_no_row_and_no_name_knows_goes_by_its_time(store: S3Server) -> None:
    sha256 = stored(b"left behind")
    StoredObject.objects.all().delete()
    assert blob_gc.sweep(later()) == 1
    assert not blobs.exists(sha256)
