from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from django.conf import settings

from jobs.models import Artifact
from jobs.recovery import reaper
from tests.jobs.builders import queued
from tests.people import make_contributor, principal_of
from tests.tracking.builders import make_experiment
from tracking.models import LoggedModel, LoggedModelFile
from trainhub import tasks
from workspaces.stored_files import blob_gc, blobs
from workspaces.stored_files.blob_writer import BlobWriter

pytestmark = pytest.mark.django_db
LONG_AGO = time.time() - 2 * blob_gc.KEEP_UNNAMED_S


def stored(content: bytes, *, at: float = LONG_AGO) -> str:
    with BlobWriter() as writer:
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


def test_spares_what_a_logged_model_names() -> None:
    sha256 = stored(b"weights of a logged model")
    model = LoggedModel.objects.create(experiment=make_experiment(), name="net")
    LoggedModelFile.objects.create(model=model, path="model.pt", size_bytes=25, sha256=sha256)
    tasks.sweep_blobs()
    assert blobs.exists(sha256)


@pytest.mark.parametrize(
    ("age_s", "stays"), [(86_400 + 60, True), (7 * 86_400 - 60, True), (7 * 86_400 + 60, False)]
)
def test_keeps_unfinished_uploads_for_seven_days(age_s: int, stays: bool) -> None:
    """In pieces and in parts alike, whichever housekeeping comes by."""
    folder = Path(settings.DATA_DIR) / "uploads"
    in_parts = folder / "parts" / "forgotten"
    in_parts.mkdir(parents=True, exist_ok=True)
    piece = folder / f"{'a' * 64}.user-1"
    piece.touch()
    then = time.time() - age_s
    for path in (piece, in_parts):
        os.utime(path, (then, then))
    reaper.check_runs()
    tasks.sweep_blobs()
    assert (piece.exists(), in_parts.exists()) == (stays, stays)


def test_spares_what_was_uploaded_and_is_not_named_yet() -> None:
    fresh, asked_for = stored(b"fresh", at=time.time()), stored(b"asked for")
    blobs.keep(asked_for)
    tasks.sweep_blobs()
    assert blobs.exists(fresh)
    assert blobs.exists(asked_for)
