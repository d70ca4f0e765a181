"""MLflow's stages. They are older than aliases, and clients still use them, as in
`models:/name/Production`."""

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
    """Moves the version to a stage; with `archive`, other versions in that stage move to Archived.

    Raises RegistryError, and PermissionDenied if the old or new stage has the name of a protected alias,
    unless `is_owner`.
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
    """Returns the stage in MLflow's spelling. Raises RegistryError for an unknown stage."""
    stage = STAGES.get(text.lower())
    if stage is None:
        raise RegistryError("stage", f"{text[:40]!r} is none; use {', '.join(STAGES.values())}")
    return stage


def check_protected(model: RegisteredModel, names: tuple[str, ...], *, is_owner: bool) -> None:
    """Raises PermissionDenied if one of `names` is a protected alias of the model, unless `is_owner`."""
    # In lower case, so that the protected alias `production` also guards the stage Production.
    guarded = {str(name).lower() for name in model.protected}
    for name in names:
        if name.lower() in guarded and not is_owner:
            raise PermissionDenied(
                f"{name!r} of {model.name} is protected: ask an owner of the workspace to move it."
            )
