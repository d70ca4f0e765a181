"""Deletes versions and models. Their numbers are never reused; blobs that no other row names are deleted
later."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from registry.models import ModelVersion, RegisteredModel
from workspaces import audit
from workspaces.models import User


@transaction.atomic
def delete_version(version: ModelVersion, user: User | None) -> None:
    """Deletes a version with its aliases and records that. The caller has checked that `user` is an owner."""
    subject = f"{version.model.name} version {version.number}"
    audit.record(
        user or "a job",
        "model.version-deleted",
        subject,
        version.model.workspace,
        files=len(version.all_files),
    )
    RegisteredModel.objects.filter(pk=version.model_id).update(updated_at=timezone.now())
    # Files and aliases go by cascade; a blob goes later, once blob_gc finds that no row names it.
    version.delete()


@transaction.atomic
def delete_model(model: RegisteredModel, user: User | None) -> None:
    """Deletes a model with its versions and aliases and records that. The caller has checked that `user` is
    an owner."""
    audit.record(
        user or "a job", "model.deleted", model.name, model.workspace, versions=model.versions.count()
    )
    model.delete()
