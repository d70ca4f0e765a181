"""Deletes environments, as far as no run needs them."""

from __future__ import annotations

from django.db import transaction

from environments import made_versions
from environments.lifecycle import delete_environment
from environments.models import Environment, EnvironmentVersion
from environments.states import VersionState
from jobs.builds.build_requests import cancel_environment_builds
from jobs.models import Run
from jobs.states import ACTIVE
from trainhub_launch.errors import SpecError
from workspaces.access import Principal


@transaction.atomic
def delete_unused(principal: Principal, environment: Environment) -> None:
    """Deletes the environment, and cancels what nodes build of it; one that a run names stays readable.
    Raises SpecError while a run that is not over needs it, and PermissionDenied."""
    # Deleted runs count, too: they can be restored, and models and certificates come from them.
    runs = Run.objects.filter(workspace=principal.workspace, spec__environment__name=environment.name)
    active = runs.filter(state__in=ACTIVE).order_by("number").first()
    if active is not None:
        raise SpecError(
            "name", f"run {active.number} is not over and needs it; cancel it or wait for its end"
        )
    # Nobody orders a version meanwhile: whoever does so locks its row first.
    versions = list(EnvironmentVersion.objects.select_for_update().filter(environment=environment))
    reason = f"{principal.user.username} deleted the environment."
    cancel_environment_builds(environment, reason)
    for version in versions:
        if version.state == VersionState.BUILDING:
            made_versions.fail_building(version, reason)
    delete_environment(principal, environment, is_named=runs.exists())
