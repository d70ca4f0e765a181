"""Taking versions and models away. Numbers are never given again; files that nothing else names go in
time."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from registry.models import ModelVersion, RegisteredModel
from workspaces import audit
from workspaces.models import User


@transaction.atomic
def delete_version(version: ModelVersion, user: User | None) -> None:
    """With its aliases. For owners only: whoever calls has checked that."""
    subject = f"{version.model.name} version {version.number}"
    audit.record(
        user or "a job",
        "model.version-deleted",
        subject,
        version.model.workspace,
        files=version.files.count(),
    )
    RegisteredModel.objects.filter(pk=version.model_id).update(updated_at=timezone.now())
    version.delete()


@transaction.atomic
def delete_model(model: RegisteredModel, user: User | None) -> None:
    """With all versions and aliases. For owners only: whoever calls has checked that."""
    audit.record(
        user or "a job", "model.deleted", model.name, model.workspace, versions=model.versions.count()
    )
    model.delete()
