"""The copies on the local disk."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from tests.stores.s3_server import S3Server
from tests.workspaces.object_store.conftest import reconfigure
from tests.workspaces.object_store.files import objects, row_of, stored, uploaded
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.stored_files import blob_cache, blobs, verification

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_cache, "_usage", blob_cache._Usage())
    monkeypatch.setattr(blob_cache, "WAIT_S", 0.2)
    monkeypatch.setattr(blob_cache, "POLL_S", 0.05)


def used(sha256: str, hours_ago: float) -> None:
    at = time.time() - hours_ago * 3600
    os.utime(blobs.path(sha256), (at, at))


def test_a_file_that_is_only_in_the_store_is_fetched_once(store: S3Server) -> None:
    sha256 = uploaded(b"weights", is_local=False)
    assert blob_cache.size_of(sha256) == 7
    for _ in range(2):
        assert blob_cache.local_path(sha256).read_bytes() == b"weights"
    assert sum(request.startswith("GET") for request in store.requests) == 1
    # It was hashed on its way.
    assert verification.is_verified(sha256, blobs.path(sha256).stat())


def test_the_least_recently_used_copies_go_and_what_waits_stays(store: S3Server, settings: Any) -> None:
    old, older, new = uploaded(b"1" * 1000), uploaded(b"2" * 1000), uploaded(b"3" * 1000)
    waiting = stored(b"4" * 1000)
    for sha256, hours in ((old, 2), (older, 3), (new, 0), (waiting, 9)):
        used(sha256, hours)
    reconfigure(settings, cache_bytes=3500)
    blob_cache.evict_copies()
    there = {sha256 for sha256 in (old, older, new, waiting) if blobs.path(sha256).exists()}
    assert there == {old, new, waiting}
    assert all(map(blobs.exists, (old, older, new, waiting)))


def test_a_copy_that_is_being_read_can_be_read_to_its_end(store: S3Server, settings: Any) -> None:
    sha256 = uploaded(b"5" * 1000)
    with blobs.path(sha256).open("rb") as file:
        used(sha256, 1)
        reconfigure(settings, cache_bytes=10)
        blob_cache.evict_copies()
        assert not blobs.path(sha256).exists()
        assert file.read() == b"5" * 1000


def test_what_was_opened_by_its_path_a_moment_ago_stays(store: S3Server, settings: Any) -> None:
    sha256 = uploaded(b"6" * 1000)
    used(sha256, 1)
    path = blob_cache.local_path(sha256)
    reconfigure(settings, cache_bytes=10)
    blob_cache.evict_copies()
    assert path.exists()


def test_an_object_with_other_bytes_never_becomes_a_copy(store: S3Server) -> None:
    sha256 = uploaded(b"weights", is_local=False)
    objects(store)[f"hub/{row_of(sha256).key}"] = b"weighed"
    with pytest.raises(StoreUnavailable, match="does not have the content that its name says"):
        blob_cache.local_path(sha256)
    assert not blobs.path(sha256).exists()


def test_an_object_that_is_gone_is_an_error_with_its_name(store: S3Server) -> None:
    sha256 = uploaded(b"weights", is_local=False)
    objects(store).clear()
    with pytest.raises(StoreUnavailable, match=f"{sha256}.* has gone from the store"):
        blob_cache.local_path(sha256)


def test_a_copy_that_is_damaged_is_fetched_again(store: S3Server) -> None:
    sha256 = uploaded(b"weights")
    file = blobs.path(sha256)
    file.chmod(0o600)
    file.write_bytes(b"weighed")
    with pytest.raises(blobs.DamagedBlob):
        blobs.verify(sha256)
    assert blob_cache.local_path(sha256).read_bytes() == b"weights"


def test_an_object_that_is_complete_counts_though_its_row_says_that_it_waits(store: S3Server) -> None:
    """The database was put back to a time before the upload, or the server was killed just after it."""
    sha256 = uploaded(b"weights", is_local=False)
    StoredObject.objects.update(state=ObjectState.WAITING)
    assert blob_cache.local_path(sha256).read_bytes() == b"weights"
    assert row_of(sha256).state == ObjectState.STORED


def test_what_is_damaged_before_it_is_uploaded_can_be_sent_again(store: S3Server) -> None:
    sha256 = stored(b"weights")
    file = blobs.path(sha256)
    file.chmod(0o600)
    file.write_bytes(b"weighed")
    with pytest.raises(blobs.DamagedBlob):
        blobs.verify(sha256)
    assert not blobs.hold(sha256)
    assert uploaded(b"weights") == sha256


def test_copies_go_where_the_disk_is_full(store: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    sha256, new = uploaded(b"8" * 1000), uploaded(b"9" * 1000)
    used(sha256, 2)
    monkeypatch.setattr(blob_cache, "free_bytes", lambda: blob_cache.MIN_FREE_BYTES - 500)
    assert not blob_cache.has_room(0)
    assert not blobs.path(sha256).exists()
    assert blobs.path(new).exists()


def test_what_another_server_has_not_uploaded_yet_is_said_with_its_name(store: S3Server) -> None:
    sha256 = stored(b"weights")
    blobs.path(sha256).rename(blobs.root() / "on-the-other-disk")
    row = row_of(sha256)
    assert blobs.exists(sha256)
    with pytest.raises(StoreUnavailable, match=f"disk of the server {row.server}"):
        blob_cache.local_path(sha256)
