"""Orders the hub to fetch the files of versions: by itself when they are locked, as the installation says, or
because somebody wants it."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from clusters.task_messages import send_task_soon
from environments.models import EnvironmentVersion
from environments.states import VersionState
from jobs.hub_files.models import FileFetch
from jobs.hub_files.states import ACTIVE_FETCHES, FetchState
from jobs.hub_files.stored_parts import AHEAD_WITHIN, hub_files_of, kinds_fetched_ahead
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.access import Principal, lacking
from workspaces.states import Role
from workspaces.task_names import TaskName


def request_fetch(principal: Principal, version: EnvironmentVersion) -> None:
    """Has the hub fetch the files of the version that it lacks. Does nothing if it has all, or fetches them
    already. Raises SpecError, and PermissionDenied."""
    if not principal.may(Role.CONTRIBUTOR):
        raise PermissionDenied(lacking(principal, Role.CONTRIBUTOR))
    if version.environment.deleted_at is not None:
        raise SpecError("version", f"{version.environment.name} was deleted; nothing is fetched for it")
    files = hub_files_of(version)
    if files is None:
        raise SpecError("version", f"{version} has no files that nodes get from the hub")
    if files.are_complete or (files.fetch and files.fetch.is_active):
        return
    with transaction.atomic():
        fetch, is_new = FileFetch.objects.get_or_create(version=version)
        if not is_new:
            ended = FileFetch.objects.filter(pk=fetch.pk).exclude(state__in=ACTIVE_FETCHES)
            ended.update(state=FetchState.WAITING, failure="", attempts=0, ordered_at=timezone.now())
        audit.record(principal.user, "environment.fetch", str(version), principal.workspace)
        send_task_soon(TaskName.FETCH_FILES)


def order_fetches() -> None:
    """Orders what the installation wants fetched of versions that were locked a moment ago."""
    versions = EnvironmentVersion.objects.filter(
        state=VersionState.LOCKED,
        kind__in=kinds_fetched_ahead(),
        resolved_at__gt=timezone.now() - AHEAD_WITHIN,
        file_fetch=None,
        environment__deleted_at=None,
    )
    for version in versions:
        FileFetch.objects.get_or_create(version=version)
