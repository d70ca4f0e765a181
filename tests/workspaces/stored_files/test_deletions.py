"""While a backup runs, nothing is deleted that its database may name."""

from __future__ import annotations

import os
import threading
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import Run
from jobs.retention import run_purge
from tests.jobs.builders import queued
from tests.people import make_contributor, principal_of
from workspaces.stored_files import blob_gc, blobs, deletions
from workspaces.stored_files.blob_writer import BlobWriter

pytestmark = pytest.mark.django_db
LONG_AGO = time.time() - 2 * blob_gc.KEEP_UNNAMED_S


def stored(content: bytes) -> str:
    with BlobWriter() as writer:
        writer.write(content)
        sha256 = writer.finish()
    os.utime(blobs.path(sha256), (LONG_AGO, LONG_AGO))
    return sha256


def test_files_stay_until_the_backup_has_ended() -> None:
    swept, freed = stored(b"swept after a backup"), stored(b"freed after a backup")
    with deletions.held(1):
        assert blob_gc.sweep() == 0
        assert blob_gc.free({freed: LONG_AGO}) == 0
        assert blobs.exists(swept)
        assert blobs.exists(freed)
    blob_gc.sweep(now=time.time() + blob_gc.UNDER_WAY_S + 1)
    assert not blobs.exists(swept)
    assert not blobs.exists(freed)


def test_deleted_runs_stay_until_the_backup_has_ended() -> None:
    run = queued(principal_of(make_contributor()))
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now() - timedelta(days=1000), state="Canceled")
    with deletions.held(1):
        assert run_purge.purge_due(before=lambda run: None) == 0
    assert run_purge.purge_due(before=lambda run: None) == 1


def test_a_backup_waits_for_a_deletion_that_has_begun_and_lets_no_other_begin() -> None:
    order = []

    def backup() -> None:
        with deletions.held(10):
            order.append("backup")

    with deletions.allowed() as is_allowed:
        assert is_allowed
        waiting = threading.Thread(target=backup)
        waiting.start()
        time.sleep(0.3)
        with deletions.allowed() as is_allowed_now:
            assert not is_allowed_now
        order.append("deletion")
    waiting.join(10)
    assert order == ["deletion", "backup"]


def test_a_second_backup_and_an_endless_deletion_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions, "GATE_S", 0.1)
    with (
        deletions.held(1),
        pytest.raises(deletions.DeletionsBusy, match=str(os.getpid())),
        deletions.held(1),
    ):
        pass
    with (
        deletions.allowed(),
        pytest.raises(deletions.DeletionsBusy, match="has been deleting"),
        deletions.held(0.1),
    ):
        pass
