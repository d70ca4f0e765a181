"""`manage.py blobs`, and what a start says about the store."""

from __future__ import annotations

import time
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from tests.stores.s3_server import S3Server
from tests.workspaces.object_store.conftest import reconfigure
from tests.workspaces.object_store.files import objects, row_of, stored, uploaded
from workspaces.checks import object_store
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import ObjectState, StoredObject
from workspaces.object_store.start_test import object_row_warnings, require_store
from workspaces.stored_files import blob_gc, blobs

pytestmark = pytest.mark.django_db(transaction=True)
CONTENTS = [b"1", b"22", b"333"]


def run(*words: str) -> str:
    output = StringIO()
    call_command("blobs", *words, stdout=output, stderr=output)
    return output.getvalue()


@pytest.fixture
def old_files(store: S3Server, settings: Any) -> list[str]:
    """Files of a hub without a store that gets one now."""
    configuration, settings.BLOB_STORE = settings.BLOB_STORE, None
    hashes = [stored(content) for content in CONTENTS]
    settings.BLOB_STORE = configuration
    return hashes


def test_all_files_of_the_disk_go_to_the_store(store: S3Server, old_files: list[str]) -> None:
    assert "3 files of this disk were not in the store; all are now" in run("to-store")
    assert sorted(objects(store).values()) == CONTENTS
    assert "0 files of this disk" in run("to-store")
    assert "3 files in the store" in run("status")


def test_an_interrupted_move_goes_on(store: S3Server, old_files: list[str]) -> None:
    blobs.hold(old_files[0])
    store.is_away = True
    with pytest.raises(CommandError, match="BLOB_STORE_ENDPOINT"):
        run("to-store")
    store.is_away = False
    StoredObject.objects.update(try_at=row_of(old_files[0]).kept_at)
    run("to-store")
    assert sorted(objects(store).values()) == CONTENTS


def test_a_move_does_not_lengthen_the_life_of_what_nothing_names(old_files: list[str]) -> None:
    for sha256 in old_files:
        blobs.set_stored_time(sha256, time.time() - blob_gc.KEEP_UNNAMED_S - 60)
    run("to-store")
    assert blob_gc.sweep() == 3


def test_all_come_back_to_the_disk(store: S3Server, settings: Any) -> None:
    hashes = [uploaded(content, is_local=False) for content in CONTENTS]
    reconfigure(settings, cache_bytes=3)
    with pytest.raises(CommandError, match="Set BLOB_CACHE_BYTES=0"):
        run("to-disk")
    reconfigure(settings, cache_bytes=0)
    assert "3 files were fetched" in run("to-disk")
    assert [blobs.path(sha256).read_bytes() for sha256 in hashes] == CONTENTS
    settings.BLOB_STORE = None
    assert all(map(blobs.exists, hashes))
    assert "3 rows of other stores" in run("forget-other-stores")


def test_rows_of_another_store_are_not_forgotten_while_it_alone_has_the_bytes(
    store: S3Server, settings: Any
) -> None:
    uploaded(b"far away", is_local=False)
    reconfigure(settings, prefix="elsewhere")
    with pytest.raises(CommandError, match="only in s3://birds/hub"):
        run("forget-other-stores")
    assert any("Set BLOB_STORE=s3://birds/hub" in sentence for sentence in object_row_warnings())


def test_verifying_names_what_is_lost_and_what_is_other(store: S3Server) -> None:
    good, lost, other = (uploaded(content) for content in CONTENTS)
    del objects(store)[f"hub/{row_of(lost).key}"]
    objects(store)[f"hub/{row_of(other).key}"] = b"444"
    output = StringIO()
    with pytest.raises(SystemExit):
        call_command("blobs", "verify", stdout=output, stderr=output)
    assert lost in output.getvalue()
    assert other not in output.getvalue()
    with pytest.raises(SystemExit):
        call_command("blobs", "verify", "--read", stdout=output, stderr=output)
    assert other in output.getvalue()
    assert good not in output.getvalue()
    assert "1 of 3 objects" in output.getvalue()


def test_without_a_store_the_commands_say_so(settings: Any) -> None:
    settings.BLOB_STORE = None
    with pytest.raises(CommandError, match="BLOB_STORE is not set"):
        run("to-store")


class TestStart:
    def test_a_store_that_is_away_is_a_warning(self, store: S3Server) -> None:
        store.is_away = True
        (sentence,) = require_store()
        assert "Until then new files wait on this disk" in sentence
        assert [message.id for message in object_store()] == ["workspaces.W003"]

    def test_one_that_can_never_work_is_an_error(self, store: S3Server, settings: Any) -> None:
        reconfigure(settings, secret="wrong")
        assert [message.id for message in object_store()] == ["workspaces.E001"]

    def test_the_bucket_is_made_where_the_setting_says_so(self, store: S3Server, settings: Any) -> None:
        reconfigure(settings, bucket="new")
        with pytest.raises(StoreUnavailable, match="BLOB_STORE_MAKE_BUCKET=1"):
            require_store()
        reconfigure(settings, makes_bucket=True)
        for _ in range(2):
            assert require_store() == []
        assert store.objects["new"] == {}

    def test_one_that_may_not_be_made_is_said(self, store: S3Server, settings: Any) -> None:
        store.makes_buckets = False
        reconfigure(settings, bucket="new", makes_bucket=True, region="eu-central-1")
        with pytest.raises(StoreUnavailable, match="let the access key make it"):
            require_store()

    def test_uploads_that_wait_long_are_named(self, store: S3Server) -> None:
        sha256 = stored(b"late")
        StoredObject.objects.update(waits_since=timezone.now() - timedelta(hours=1))
        (sentence,) = object_row_warnings()
        assert f"the server {row_of(sha256).server} does not upload them" in sentence
        assert row_of(sha256).state == ObjectState.WAITING
