"""What a call is about, as far as whoever calls may see or change it."""

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


def model(who: Caller, asked: CallArgs, name: str = "name") -> RegisteredModel:
    wanted = required_text(asked, name)
    found = named(who).filter(name=wanted).first()
    if found is None:
        raise MlflowError(MISSING, f"Registered Model with name={wanted[:200]} not found")
    return found


def named(who: Caller) -> QuerySet[RegisteredModel]:
    """The workspace's models, their aliases at hand; versions may be many, and are not."""
    models = RegisteredModel.objects.filter(workspace=who.workspace).select_related("workspace")
    return models.prefetch_related("aliases__version__run")


def describable(who: Caller, asked: CallArgs) -> RegisteredModel:
    """A job describes and tags the models that it has made a version of, and those that have none yet."""
    found = model(who, asked)
    if who.job is not None and found.versions.exists():
        own = found.versions.filter(Q(run=who.job) | Q(run__parent=who.job))
        if not own.exists():
            sentence = (
                f"The token of run {who.job.number} describes models that it has made a version of; "
                "use one of yours."
            )
            raise PermissionDenied(sentence)
    return found


def version(who: Caller, asked: CallArgs) -> ModelVersion:
    name, number = required_text(asked, "name"), number_of(asked)
    found = versions_of(who.workspace).filter(model__name=name, number=number).first()
    if found is None:
        raise MlflowError(MISSING, f"Model Version (name={name[:200]}, version={number}) not found")
    return found


def changeable(who: Caller, asked: CallArgs) -> ModelVersion:
    """A job changes the versions of what it has made itself."""
    found = version(who, asked)
    check_own(who, found)
    return found


def check_own(who: Caller, found: ModelVersion) -> None:
    if who.job is not None and (found.run is None or not who.may_write(found.run)):
        sentence = (
            f"The token of run {who.job.number} changes versions of what that run has made. Use an "
            "API token of your own."
        )
        raise PermissionDenied(sentence)


def is_owner(who: Caller) -> bool:
    return who.job is None and who.may(Role.OWNER)


def number_of(asked: CallArgs) -> int:
    text = str(asked.get("version") or "")
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise MlflowError(INVALID, f"Parameter 'version' must be an integer, got '{text[:40]}'.")
    return int(text)


def tags_of(asked: CallArgs) -> dict[str, str]:
    """Of something new. TrainHub's own stay behind: a client that copies a version sends that one's along."""
    # One character more than allowed: what is too long is refused, not cut off.
    told = parse_tags(objects(asked, "tags"), LONGEST_VALUE + 1)
    return {key: value for key, value in told.items() if not key.startswith(OURS)}
