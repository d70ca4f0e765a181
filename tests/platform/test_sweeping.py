from __future__ import annotations

import os
import time

import pytest

from jobs.models import Artifact
from tests.jobs.builders import queued
from tests.people import make_contributor, principal_of
from trainhub import tasks
from workspaces import blobs, sweeping

pytestmark = pytest.mark.django_db
LONG_AGO = time.time() - 2 * sweeping.KEEP_UNNAMED_S


def stored(content: bytes, *, at: float = LONG_AGO) -> str:
    with blobs.BlobWriter() as writer:
        writer.write(content)
        sha256 = writer.finish()
    os.utime(blobs.path(sha256), (at, at))
    return sha256


def test_frees_what_a_deleted_run_left() -> None:
    run = queued(principal_of(make_contributor()))
    sha256 = stored(b"of a deleted run")
    Artifact.objects.create(run=run, attempt=1, path="model.pt", size_bytes=16, sha256=sha256)
    tasks.sweep_blobs()
    assert blobs.exists(sha256)
    run.delete()
    tasks.sweep_blobs()
    assert not blobs.exists(sha256)


def test_spares_what_was_uploaded_and_is_not_named_yet() -> None:
    fresh, asked_for = stored(b"fresh", at=time.time()), stored(b"asked for")
    blobs.keep(asked_for)
    tasks.sweep_blobs()
    assert blobs.exists(fresh)
    assert blobs.exists(asked_for)
