"""Versions of a logged model that had no files yet when it was registered: they get the files once it has
them."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from jobs.task_messages import send_task_soon
from registry.certificates import issuance
from registry.models import ModelFile, ModelVersion
from registry.registration import LOGGED_MODEL, files_below
from tracking.models import LoggedModel
from workspaces.stored_files import blobs

READY = "LOGGED_MODEL_READY"
MAX_AT_ONCE = 100


def fill_all(model_id: str = "") -> None:
    """Give the versions of that logged model their files, or those of all models that have become ready
    meanwhile."""
    waiting = _waiting().filter(logged_model__status=READY)
    if model_id:
        waiting = waiting.filter(logged_model=model_id)
    for version in waiting.select_related("model__workspace", "run", "logged_model")[:MAX_AT_ONCE]:
        fill(version)


def fill(version: ModelVersion) -> None:
    """Give a version its files and its certificate, where its logged model is ready and it has none yet."""
    if version.kind != LOGGED_MODEL or version.certificate or version.logged_model is None:
        return
    if not LoggedModel.objects.filter(pk=version.logged_model_id, status=READY).exists():
        return
    origin = issuance.origin_of(version)
    with transaction.atomic():
        locked = _waiting().select_for_update().filter(pk=version.pk).first()
        if locked is None:
            return
        found = [
            item
            for item in files_below(version.source_path, version.logged_model.files.all())
            if blobs.hold(item.sha256)
        ]
        if not found:
            return
        files = ModelFile.objects.bulk_create(
            ModelFile(version=version, path=item.path, size_bytes=item.size_bytes, sha256=item.sha256)
            for item in found
        )
        issuance.issue(version, files, origin)
        ModelVersion.objects.filter(pk=version.pk).update(scan=None)
        send_task_soon("registry.tasks.scan_version", version.pk)


def _waiting() -> QuerySet[ModelVersion]:
    versions = ModelVersion.objects.filter(kind=LOGGED_MODEL, certificate="", logged_model__isnull=False)
    return versions.filter(~Exists(ModelFile.objects.filter(version=OuterRef("pk"))))
