"""The ticket with which a node uploads what it has made for one build, and gets the login of a registry that
the version names, and nothing else. It is derived from the secret key, so that none is stored, and ends with
the build."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from django.conf import settings

from jobs.builds.models import EnvironmentBuild, is_build_id
from jobs.builds.states import BuildPurpose

PREFIX = "thu_"
ADDRESS = "/api/v1/node/builds"


def upload_ticket(build_id: str) -> str:
    key = hashlib.sha256(b"trainhub build upload ticket\0" + settings.SECRET_KEY.encode()).digest()
    mac = hmac.new(key, build_id.encode(), hashlib.sha256).digest()
    return PREFIX + base64.urlsafe_b64encode(mac).decode().rstrip("=")


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
    scheme, _, ticket = header.partition(" ")
    if scheme.lower() != "bearer" or not is_build_id(build_id):
        return False
    return hmac.compare_digest(ticket.strip().encode(), upload_ticket(build_id).encode())


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
