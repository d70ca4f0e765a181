"""Marks versions of a workspace's environments as outdated, and deletes environments."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from environments.catalog import find, own_version
from environments.curated import BY_NAME
from environments.models import Environment, EnvironmentVersion
from environments.states import VersionState
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import EnvironmentRef
from workspaces import audit
from workspaces.access import Principal, lacking
from workspaces.states import Role

MAX_REASON_LENGTH = 300


def mark_outdated(
    principal: Principal, version: EnvironmentVersion, reason: str, successor: str = ""
) -> None:
    """Says of a version that it should no longer be used, and which one to use instead: the name of an
    environment, or NAME:NUMBER. Runs can still use it. Raises SpecError, and PermissionDenied."""
    _require(principal, principal.may(Role.CONTRIBUTOR), Role.CONTRIBUTOR)
    reason, successor = " ".join(reason.split()), successor.strip()
    if not reason:
        raise SpecError("reason", "say in a sentence why the version should no longer be used")
    if len(reason) > MAX_REASON_LENGTH or "\x00" in reason:
        raise SpecError("reason", f"must have at most {MAX_REASON_LENGTH} characters")
    if successor:
        _check_successor(version, successor)
    EnvironmentVersion.objects.filter(pk=version.pk).update(outdated=reason, successor=successor)
    audit.record(
        principal.user,
        "environment.outdated",
        str(version),
        principal.workspace,
        reason=reason,
        successor=successor,
    )


def unmark_outdated(principal: Principal, version: EnvironmentVersion) -> None:
    """Takes the mark back. Raises PermissionDenied."""
    _require(principal, principal.may(Role.CONTRIBUTOR), Role.CONTRIBUTOR)
    EnvironmentVersion.objects.filter(pk=version.pk).update(outdated="", successor="")
    audit.record(principal.user, "environment.current", str(version), principal.workspace)


def may_delete(principal: Principal, environment: Environment) -> bool:
    """Returns whether this person may delete the environment: owners, and who made it."""
    is_maker = environment.created_by_id is not None and environment.created_by_id == principal.user.pk
    return principal.may(Role.OWNER) or (is_maker and principal.may(Role.CONTRIBUTOR))


@transaction.atomic
def delete_environment(principal: Principal, environment: Environment, *, is_named: bool) -> None:
    """Deletes the environment. `is_named`: something that is kept names it, so that it is only hidden and
    stays readable. Raises SpecError while a version is being resolved, and PermissionDenied."""
    _require(principal, may_delete(principal, environment), Role.OWNER)
    resolving = environment.versions.filter(state=VersionState.RESOLVING).first()
    if resolving is not None:
        raise SpecError("name", f"{resolving} is being resolved; delete {environment.name} when that is done")
    audit.record(
        principal.user, "environment.delete", environment.name, principal.workspace, is_kept_readable=is_named
    )
    if is_named:
        Environment.objects.filter(pk=environment.pk).update(deleted_at=timezone.now())
    else:
        environment.delete()


def _check_successor(version: EnvironmentVersion, successor: str) -> None:
    """Raises SpecError if the successor is the version itself or nothing that a run can use."""
    name, _, number = successor.partition(":")
    workspace = version.environment.owner
    if name in BY_NAME and not number:
        return
    try:
        find(EnvironmentRef(name, number), workspace)
        chosen = None if name in BY_NAME else own_version(EnvironmentRef(name, number), workspace)
    except SpecError as error:
        raise SpecError("successor", error.message) from error
    if chosen is not None and chosen.pk == version.pk:
        raise SpecError("successor", "is the version itself; name another one, such as NAME:3")


def _require(principal: Principal, is_allowed: bool, role: Role) -> None:
    if not is_allowed:
        raise PermissionDenied(lacking(principal, role))
