"""MLflow's stages: older than aliases, and still asked for by `models:/name/Production`."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from registry.errors import RegistryError
from registry.models import ModelVersion, RegisteredModel
from workspaces import audit
from workspaces.models import User

NONE, STAGING, PRODUCTION, ARCHIVED = "None", "Staging", "Production", "Archived"
STAGES = {stage.lower(): stage for stage in (NONE, STAGING, PRODUCTION, ARCHIVED)}
ACTIVE = (STAGING, PRODUCTION)


@transaction.atomic
def move(
    version: ModelVersion, to: str, user: User | None, *, archive: bool = False, is_owner: bool = False
) -> ModelVersion:
    """Move the version to a stage; with `archive` those that were there go to Archived. Raises RegistryError,
    PermissionDenied.

    A stage whose name is among the model's protected aliases is moved into and out of by owners only.
    """
    stage = canonical(to)
    if archive and stage not in ACTIVE:
        raise RegistryError(
            "archive_existing_versions", f"is for the stages {' and '.join(ACTIVE)} only, not for {stage}"
        )
    check_protected(version.model, (stage, version.stage), is_owner=is_owner)
    now = timezone.now()
    if archive:
        others = ModelVersion.objects.filter(model=version.model, stage=stage).exclude(pk=version.pk)
        others.update(stage=ARCHIVED, updated_at=now)
    version.stage = stage
    version.save(update_fields=["stage", "updated_at"])
    RegisteredModel.objects.filter(pk=version.model_id).update(updated_at=now)
    subject = f"{version.model.name} version {version.number}"
    audit.record(user or "a job", "model.stage-set", subject, version.model.workspace, stage=stage)
    return version


def canonical(text: str) -> str:
    """Raises RegistryError for a word that is no stage."""
    found = STAGES.get(text.lower())
    if found is None:
        raise RegistryError("stage", f"{text[:40]!r} is none; use {', '.join(STAGES.values())}")
    return found


def check_protected(model: RegisteredModel, names: tuple[str, ...], *, is_owner: bool) -> None:
    """Raises PermissionDenied where one of `names` is for owners to move."""
    guarded = {str(name).lower() for name in model.protected}
    for name in names:
        if name.lower() in guarded and not is_owner:
            raise PermissionDenied(
                f"{name!r} of {model.name} is protected: ask an owner of the workspace to move it."
            )
