"""Adds the files to versions of a logged model that had none yet when it was registered."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from clusters.task_messages import send_task_soon
from registry.certificates import issuance
from registry.models import ModelFile, ModelVersion
from registry.registration import LOGGED_MODEL, files_below
from tracking.models import LoggedModel
from workspaces.stored_files import blobs
from workspaces.task_names import TaskName

log = logging.getLogger(__name__)
READY = "LOGGED_MODEL_READY"
# The rest follow with the periodic scan_missed, every minute.
MAX_AT_ONCE = 100


def fill_all(model_id: str = "") -> None:
    """Adds the files to waiting versions of that logged model, or of all logged models whose upload has
    ended."""
    waiting = _waiting().filter(logged_model__status=READY)
    if model_id:
        waiting = waiting.filter(logged_model=model_id)
    for version in waiting.select_related("model__workspace", "run", "logged_model")[:MAX_AT_ONCE]:
        fill(version)


def fill(version: ModelVersion) -> None:
    """Adds the files and the certificate to a version that has neither, if its logged model is ready."""
    if version.kind != LOGGED_MODEL or version.certificate or version.logged_model is None:
        return
    # A new query, as `version.logged_model` may have been read before the upload ended.
    if not LoggedModel.objects.filter(pk=version.logged_model_id, status=READY).exists():
        return
    origin = issuance.origin_of(version)
    with transaction.atomic():
        # Of two that fill a version at once, the second waits here; by then it has a certificate and no
        # longer matches.
        locked = _waiting().select_for_update().filter(pk=version.pk).first()
        if locked is None:
            return
        entries = files_below(version.source_path, version.logged_model.files.all())
        if not entries:
            return
        missing = [item.path for item in entries if not blobs.hold(item.sha256)]
        if missing:
            # A certificate would say that the version is complete.
            log.error(
                "%s version %s gets no files: the stored bytes of %s are missing",
                version.model,
                version.number,
                ", ".join(missing[:5]),
            )
            return
        files = ModelFile.objects.bulk_create(
            ModelFile(version=version, path=item.path, size_bytes=item.size_bytes, sha256=item.sha256)
            for item in entries
        )
        issuance.issue(version, files, origin)
        ModelVersion.objects.filter(pk=version.pk).update(scan=None)
        send_task_soon(TaskName.SCAN_VERSION, version.pk)


def _waiting() -> QuerySet[ModelVersion]:
    versions = ModelVersion.objects.filter(kind=LOGGED_MODEL, certificate="", logged_model__isnull=False)
    return versions.filter(~Exists(ModelFile.objects.filter(version=OuterRef("pk"))))
