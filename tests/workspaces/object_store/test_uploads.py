"""The way of a stored file to the store, and what goes wrong on it."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.hub import eventually
from tests.stores.s3_server import BUCKET, S3Server
from tests.workspaces.object_store.conftest import reconfigure
from tests.workspaces.object_store.files import objects, row_of, stored, uploaded
from workspaces.object_store.client import PART_BYTES, object_client
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.stored_files import blob_cache, blob_uploads, blobs
from workspaces.stored_files.object_sweep import delete_expired_objects

pytestmark = pytest.mark.django_db(transaction=True)
SMALL = b"a checkpoint"
LARGE = os.urandom(2 * PART_BYTES + 1234)


def retry_now() -> None:
    StoredObject.objects.update(try_at=timezone.now())
    blob_uploads.upload_waiting()


@pytest.mark.parametrize("content", [b"", SMALL, LARGE])
def test_a_file_becomes_one_object_that_its_hash_names(store: S3Server, content: bytes) -> None:
    sha256 = uploaded(content)
    assert objects(store) == {f"hub/{row_of(sha256).key}": content}
    assert row_of(sha256).key.startswith(f"{sha256[:2]}/{sha256}-")


def test_what_is_stored_twice_is_uploaded_once(store: S3Server) -> None:
    assert uploaded(SMALL) == uploaded(SMALL)
    assert len(objects(store)) == 1


def test_while_the_store_is_away_the_file_waits_on_the_disk_and_goes_up_later(store: S3Server) -> None:
    store.is_away = True
    sha256 = stored(LARGE)
    blob_uploads.upload_waiting()
    row = row_of(sha256)
    assert (row.state, row.tries) == (ObjectState.WAITING, 1)
    assert "status 503" in row.error or "ServiceUnavailable" in row.error
    assert row.try_at > timezone.now()
    assert blob_cache.local_path(sha256).read_bytes() == LARGE
    store.is_away = False
    retry_now()
    assert row_of(sha256).state == ObjectState.STORED
    assert list(objects(store).values()) == [LARGE]


def test_single_answers_of_503_are_not_even_noticed(store: S3Server) -> None:
    store.statuses.extend([503, 503])
    assert row_of(uploaded(LARGE)).tries == 0


def test_an_upload_that_the_store_loses_is_begun_again(store: S3Server) -> None:
    store.lost_uploads = 2
    assert row_of(uploaded(LARGE)).tries == 0
    assert list(objects(store).values()) == [LARGE]


def test_an_upload_that_is_lost_each_time_waits_and_the_bytes_stay(store: S3Server) -> None:
    store.lost_uploads = 100
    sha256 = stored(LARGE)
    blob_uploads.upload_waiting()
    assert row_of(sha256).tries == 1
    assert blobs.path(sha256).exists()
    store.lost_uploads = 0
    retry_now()
    assert row_of(sha256).state == ObjectState.STORED


def test_lists_that_are_late_do_not_matter(store: S3Server) -> None:
    store.is_listing_late = True
    sha256 = uploaded(SMALL, is_local=False)
    assert blobs.exists(sha256)
    assert blob_cache.local_path(sha256).read_bytes() == SMALL
    assert not any(request.rstrip("/") == "GET /birds" for request in store.requests)


def test_a_file_that_is_damaged_before_its_upload_is_not_uploaded(store: S3Server) -> None:
    sha256 = stored(LARGE)
    file = blobs.path(sha256)
    file.chmod(0o600)
    file.write_bytes(LARGE[:-1] + bytes([LARGE[-1] ^ 1]))
    blob_uploads.upload_waiting()
    assert objects(store) == {}
    assert not blobs.exists(sha256)
    # Who sends the right bytes again is heard.
    assert uploaded(LARGE) == sha256


def test_a_file_that_another_process_uploads_is_left_to_it(store: S3Server) -> None:
    sha256 = stored(SMALL)
    with blobs.path(sha256).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert blob_uploads.upload_waiting() == 0
    assert blob_uploads.upload_waiting() == 1


def test_one_that_begins_to_wait_while_another_is_uploaded_does_not_wait_for_its_end(store: S3Server) -> None:
    stored(SMALL)
    store.takes.clear()
    upload = threading.Thread(target=blob_uploads.upload_waiting)
    upload.start()
    eventually(lambda: store.waiting)
    store.waiting = False
    stored(LARGE)
    eventually(lambda: store.waiting)
    store.takes.set()
    upload.join()
    assert len(objects(store)) == 2


@contextmanager
def while_it_is_uploaded(store: S3Server) -> Iterator[None]:
    """Uploads what waits, and lets the store take it after the body."""
    store.takes.clear()
    upload = threading.Thread(target=blob_uploads.upload_waiting)
    upload.start()
    eventually(lambda: store.waiting)
    try:
        yield
    finally:
        store.takes.set()
        upload.join()


def test_one_that_is_deleted_while_it_is_uploaded_goes_with_its_row(store: S3Server, settings: Any) -> None:
    sha256 = stored(SMALL)
    with while_it_is_uploaded(store):
        assert blobs.discard(sha256, unkept_since=timezone.now().timestamp() + 60) == len(SMALL)
    assert row_of(sha256).state == ObjectState.DELETED
    reconfigure(settings, deleted_days=0.0)
    assert delete_expired_objects() == 1
    assert objects(store) == {}


def test_one_whose_row_is_gone_when_its_upload_ends_leaves_no_object(store: S3Server) -> None:
    stored(SMALL)
    with while_it_is_uploaded(store):
        StoredObject.objects.all().delete()
    assert objects(store) == {}


class TestTwoServersWithTheSameFile:
    """A node that does not reach one server sends its file to the other, too: each has it on its own disk."""

    @pytest.mark.parametrize("content", [SMALL, LARGE])
    def test_the_one_that_ends_later_leaves_the_object(self, store: S3Server, content: bytes) -> None:
        sha256 = stored(content)
        with while_it_is_uploaded(store):
            StoredObject.objects.update(state=ObjectState.STORED)
        assert objects(store) == {f"hub/{row_of(sha256).key}": content}
        assert blob_uploads.upload_waiting() == 0

    def test_a_damaged_file_does_not_replace_the_object(self, store: S3Server) -> None:
        sha256 = uploaded(SMALL)
        row = row_of(sha256)
        # As the other server sees it, which has read the row a moment before.
        StoredObject.objects.update(state=ObjectState.WAITING)
        file = blobs.path(sha256)
        file.chmod(0o600)
        file.write_bytes(SMALL.upper())
        assert not blob_uploads.upload_file(row)
        assert objects(store) == {f"hub/{row.key}": SMALL}


class TestSettings:
    """What is wrong is said with the setting and the remedy."""

    def test_all_is_well(self, store: S3Server) -> None:
        object_client().test_rights()
        assert objects(store) == {}

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"bucket": "nothing"}, "There is no bucket nothing .*make it, .*or correct BLOB_STORE"),
            ({"key_id": "AKIAOTHER"}, "refuses the access key .*BLOB_STORE_KEY_ID and BLOB_STORE_SECRET"),
            ({"secret": "wrong"}, "SignatureDoesNotMatch.*BLOB_STORE_SECRET"),
            ({"endpoint": "http://127.0.0.1:9"}, "refuses the connection.*BLOB_STORE_ENDPOINT"),
        ],
    )
    def test_wrong(self, store: S3Server, settings: Any, changes: dict[str, str], sentence: str) -> None:
        reconfigure(settings, **changes)
        with pytest.raises(StoreUnavailable, match=sentence) as caught:
            object_client().test_rights()
        assert caught.value.is_lasting == ("endpoint" not in changes)

    def test_a_clock_that_is_wrong(self, store: S3Server) -> None:
        store.skew = timedelta(hours=1)
        with pytest.raises(StoreUnavailable, match=r"the clock of this machine.*NTP"):
            object_client().test_rights()

    def test_the_secret_is_in_no_text(self, settings: Any, store: S3Server) -> None:
        assert settings.BLOB_STORE.secret not in repr(settings.BLOB_STORE)
        store.skew = timedelta(hours=1)
        with pytest.raises(StoreUnavailable) as caught:
            object_client().test_rights()
        assert settings.BLOB_STORE.secret not in str(caught.value)
        assert BUCKET in str(caught.value)
