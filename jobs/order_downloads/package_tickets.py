"""The ticket with which a node gets the package files of one order from the hub, and nothing else."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from django.conf import settings

from clusters.models import Node
from environments import catalog
from environments.models import EnvironmentVersion
from environments.packages.file_list import has_all_files
from environments.states import EnvironmentKind
from jobs.builds.models import BUILD_ATTEMPT, is_build_id
from jobs.models import Attempt, EnvironmentBuild
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import HUB_CONDA
from trainhub_launch.spec import EnvironmentRef
from workspaces.models import Workspace

PREFIX = "thk_"
USER = "trainhub"
ADDRESS = "/api/v1/node/packages"


def package_ticket(order: str, attempt: int) -> str:
    """Returns the ticket of an order. It is derived: a repeated claim gets the same one, and none is
    stored."""
    key = hashlib.sha256(b"trainhub package ticket\0" + settings.SECRET_KEY.encode()).digest()
    mac = hmac.new(key, f"{order}/{attempt}".encode(), hashlib.sha256).digest()
    return PREFIX + base64.urlsafe_b64encode(mac).decode().rstrip("=")


def package_access(  # noqa: PLR0917 - what an order is made of
    order: str, attempt: int, ref: EnvironmentRef, workspace: Workspace, node: Node, hub_url: str
) -> tuple[str, str]:
    """Returns the address at which a node finds the packages of its order, and the ticket; two empty texts if
    the hub does not know the files of that environment."""
    version = _own_version(ref, workspace)
    if version is None or not has_all_files(version):
        return "", ""
    if version.kind == EnvironmentKind.CONDA and HUB_CONDA not in node.capabilities.split():
        # An older agent would take the lock of pip's part for that of the whole environment.
        return "", ""
    return f"{hub_url.rstrip('/')}{ADDRESS}/{order}/{attempt}", package_ticket(order, attempt)


def version_of_order(order: str, attempt: int) -> EnvironmentVersion | None:
    """Returns the environment that the order installs; None once the order is over."""
    if is_build_id(order):
        build = EnvironmentBuild.objects.select_related("own_version__environment")
        row = build.filter(pk=order, ended_at=None).first()
        return row.own_version if row is not None and attempt == BUILD_ATTEMPT else None
    return _version_of_run(order, attempt)


def _version_of_run(run: str, attempt: int) -> EnvironmentVersion | None:
    row = (
        Attempt.objects.select_related("run__workspace")
        .filter(run_id=run, number=attempt, ended_at=None)
        .first()
    )
    if row is None:
        return None
    environment: Mapping[str, str] = row.run.spec.get("environment", {})
    ref = EnvironmentRef(environment.get("name", ""), environment.get("version", ""))
    return _own_version(ref, row.run.workspace)


def is_ticket_of(header: str, order: str, attempt: int) -> bool:
    """Returns whether a header Authorization has the ticket of the order, as the password of Basic or as a
    Bearer token."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() == "basic":
        try:
            text = base64.b64decode(text.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(text.strip().encode(), package_ticket(order, attempt).encode())


def _own_version(ref: EnvironmentRef, workspace: Workspace) -> EnvironmentVersion | None:
    try:
        return catalog.own_version(ref, workspace)
    except SpecError:
        # An interpreter or a curated environment, whose files the hub does not know.
        return None
