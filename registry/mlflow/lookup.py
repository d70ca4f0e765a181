"""Finds the model or version of a call, and checks that the caller may see or change it."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet

from registry.lookup import versions_of
from registry.model_metadata import LONGEST_VALUE, OURS
from registry.models import ModelVersion, RegisteredModel
from tracking.callers import Caller
from tracking.mlflow.logging_calls import parse_tags
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, objects, required_text
from workspaces.states import Role


def model(who: Caller, args: CallArgs, name: str = "name") -> RegisteredModel:
    model_name = required_text(args, name)
    row = visible_models(who).filter(name=model_name).first()
    if row is None:
        raise MlflowError(MISSING, f"Registered Model with name={model_name[:200]} not found")
    return row


def visible_models(who: Caller) -> QuerySet[RegisteredModel]:
    """Returns the workspace's models with prefetched aliases. Versions are not prefetched, as there may be
    many."""
    models = RegisteredModel.objects.filter(workspace=who.workspace).select_related("workspace")
    return models.prefetch_related("aliases__version__run")


def describable(who: Caller, args: CallArgs) -> RegisteredModel:
    """Returns the model of the call. Raises PermissionDenied for a job unless the model has no version, or
    one made by that job."""
    row = model(who, args)
    if who.job is not None and row.versions.exists():
        own = row.versions.filter(Q(run=who.job) | Q(run__parent=who.job))
        if not own.exists():
            sentence = (
                f"The token of run {who.job.number} describes models that it has made a version of; "
                "use one of yours."
            )
            raise PermissionDenied(sentence)
    return row


def version(who: Caller, args: CallArgs) -> ModelVersion:
    name, number = required_text(args, "name"), number_of(args)
    row = versions_of(who.workspace).filter(model__name=name, number=number).first()
    if row is None:
        raise MlflowError(MISSING, f"Model Version (name={name[:200]}, version={number}) not found")
    return row


def changeable(who: Caller, args: CallArgs) -> ModelVersion:
    """Returns the version of the call. Raises PermissionDenied for a job that did not make it."""
    row = version(who, args)
    check_own(who, row)
    return row


def check_own(who: Caller, row: ModelVersion) -> None:
    if who.job is not None and (row.run is None or not who.may_write(row.run)):
        sentence = (
            f"The token of run {who.job.number} changes versions of what that run has made. Use an "
            "API token of your own."
        )
        raise PermissionDenied(sentence)


def is_owner(who: Caller) -> bool:
    return who.job is None and who.may(Role.OWNER)


def number_of(args: CallArgs) -> int:
    text = str(args.get("version") or "")
    # isdecimal() alone accepts digits of other scripts; nine digits fit into the column's 32 bits.
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise MlflowError(INVALID, f"Parameter 'version' must be an integer, got '{text[:40]}'.")
    return int(text)


def tags_of(args: CallArgs) -> dict[str, str]:
    """Returns the tags of a new model or version, without TrainHub's own: a client that copies a version
    sends that version's tags."""
    # One character more than allowed: what is too long is refused, not cut off.
    tags = parse_tags(objects(args, "tags"), LONGEST_VALUE + 1)
    return {key: value for key, value in tags.items() if not key.startswith(OURS)}
