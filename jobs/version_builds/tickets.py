"""What the ticket of a build opens: with it a node uploads what it has made for that build, and gets the
login of a registry that the version names, and nothing else."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings

from jobs.builds.models import EnvironmentBuild, is_build_id
from jobs.builds.states import BuildPurpose
from jobs.node_orders.tickets import has_ticket_of, upload_ticket

ADDRESS = "/api/v1/node/builds"


def making_order(build: EnvironmentBuild, hub_url: str) -> dict[str, Any]:
    """Returns what the node of the build is to make, as it stands in its order; empty if it is to install an
    environment."""
    if build.purpose != BuildPurpose.MAKE or build.own_version is None:
        return {}
    return {
        **json.loads(build.own_version.draft),
        "upload": f"{hub_url.rstrip('/')}{ADDRESS}/{build.pk}",
        "ticket": upload_ticket(build.pk),
        "timeout_s": settings.ENVIRONMENT_BUILD_TIMEOUT,
        "max_bytes": settings.MAX_ENVIRONMENT_BUILD_BYTES,
    }


def is_ticket_of_build(header: str, build_id: str) -> bool:
    """Returns whether a header Authorization has the ticket of the build."""
    return is_build_id(build_id) and has_ticket_of(header, build_id)


def open_build(build_id: str) -> EnvironmentBuild | None:
    """Returns the build that its node may upload for now; None once its node's part is over."""
    builds = EnvironmentBuild.objects.select_related(
        "own_version__environment__workspace", "own_version__created_by", "node"
    )
    return (
        builds.filter(
            pk=build_id,
            purpose=BuildPurpose.MAKE,
            ended_at=None,
            cancel_requested_at=None,
            node__revoked_at=None,
        )
        .exclude(claimed_at=None)
        .exclude(own_version=None)
        .first()
    )
