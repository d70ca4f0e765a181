"""Deletes environments, as far as no run needs them."""

from __future__ import annotations

from environments.lifecycle import delete_environment
from environments.models import Environment
from jobs.models import EnvironmentBuild, Run
from jobs.states import ACTIVE
from trainhub_launch.errors import SpecError
from workspaces.access import Principal


def delete_unused(principal: Principal, environment: Environment) -> None:
    """Deletes the environment; one that a run names stays readable. Raises SpecError while a run that is not
    over or a build needs it, and PermissionDenied."""
    # Deleted runs count, too: they can be restored, and models and certificates come from them.
    runs = Run.objects.filter(workspace=principal.workspace, spec__environment__name=environment.name)
    active = runs.filter(state__in=ACTIVE).order_by("number").first()
    if active is not None:
        raise SpecError(
            "name", f"run {active.number} is not over and needs it; cancel it or wait for its end"
        )
    builds = EnvironmentBuild.objects.filter(own_version__environment=environment, ended_at=None)
    build = builds.select_related("node").first()
    if build is not None:
        raise SpecError("name", f"{build.node.name} is building it; cancel that or wait for its end")
    delete_environment(principal, environment, is_named=runs.exists())
