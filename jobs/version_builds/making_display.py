"""What the page of a version that a node must make shows of that."""

from __future__ import annotations

from environments.models import EnvironmentVersion
from environments.states import VersionState
from jobs.builds.models import EnvironmentBuild
from jobs.builds.states import BuildPurpose
from jobs.version_builds.making_nodes import waiting_reason


def making_context(version: EnvironmentVersion) -> dict[str, object]:
    """Returns nothing for a version that no node must make."""
    if not version.draft:
        return {}
    builds = EnvironmentBuild.objects.filter(own_version=version, purpose=BuildPurpose.MAKE)
    newest = builds.select_related("node", "created_by").order_by("-created_at", "pk").first()
    is_open = newest is not None and not newest.is_finished
    return {
        "making": newest,
        "waiting_reason": "" if is_open else waiting_reason(version),
        "can_build_again": version.state == VersionState.FAILED,
    }
