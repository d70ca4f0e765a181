"""The ticket with which a node gets the package files of one order from the hub, and nothing else.

The ticket names the order, and the address is the same for all orders: installers keep what they have
downloaded under the address of its index."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db.models import QuerySet

from clusters.models import Node
from environments import catalog
from environments.models import EnvironmentVersion, LockedFile
from environments.packages.file_list import has_all_files
from environments.states import EnvironmentKind
from jobs.builds.models import BUILD_ATTEMPT, is_build_id
from jobs.builds.states import BuildPurpose
from jobs.models import Attempt, EnvironmentBuild
from trainhub_launch.machine import HUB_CONDA
from trainhub_launch.spec import EnvironmentRef
from workspaces.models import Workspace

PREFIX = "thk"
USER = "trainhub"
ADDRESS = "/api/v1/node/packages"
# Runs and builds have ids of 32 hexadecimal digits.
_TICKET = re.compile(rf"{PREFIX}_([0-9a-f]{{32}})_([0-9]{{1,9}})_[A-Za-z0-9_-]{{43}}\Z")


@dataclass(frozen=True)
class OrderFiles:
    """The package files that an order may get. `with_build_files`: those, too, that only building others of
    the version's packages needs."""

    version: EnvironmentVersion
    with_build_files: bool = False

    @property
    def rows(self) -> QuerySet[LockedFile]:
        rows = LockedFile.objects.filter(version=self.version).select_related("version__environment")
        return rows if self.with_build_files else rows.filter(is_for_build=False)


def package_ticket(order: str, attempt: int) -> str:
    """Returns the ticket of an order. It is derived: a repeated claim gets the same one, and none is
    stored."""
    key = hashlib.sha256(b"trainhub package ticket\0" + settings.SECRET_KEY.encode()).digest()
    mac = hmac.new(key, f"{order}/{attempt}".encode(), hashlib.sha256).digest()
    code = base64.urlsafe_b64encode(mac).decode().rstrip("=")
    return f"{PREFIX}_{order}_{attempt}_{code}"


def package_access(  # noqa: PLR0917 - what an order is made of
    order: str, attempt: int, ref: EnvironmentRef, workspace: Workspace | None, node: Node, hub_url: str
) -> tuple[str, str]:
    """Returns the address at which a node finds the packages of its order, and the ticket; two empty texts if
    the hub does not know the files of that environment."""
    version = catalog.locked_version(ref, workspace)
    if version is None or not has_all_files(version):
        return "", ""
    if version.kind == EnvironmentKind.CONDA and HUB_CONDA not in node.capabilities.split():
        # An older agent would take the lock of pip's part for that of the whole environment.
        return "", ""
    return f"{hub_url.rstrip('/')}{ADDRESS}", package_ticket(order, attempt)


def making_package_access(build: EnvironmentBuild, hub_url: str) -> tuple[str, str]:
    """Returns the same for a build that makes what a version consists of."""
    if build.own_version is None or not build.own_version.files.exists():
        return "", ""
    ticket = package_ticket(build.pk, BUILD_ATTEMPT)
    return f"{hub_url.rstrip('/')}{ADDRESS}", ticket


def files_of_order(order: str, attempt: int) -> OrderFiles | None:
    """Returns the files that the node needs for the order; None once the order is over."""
    if not is_build_id(order):
        version = _version_of_run(order, attempt)
        return OrderFiles(version) if version is not None else None
    builds = EnvironmentBuild.objects.select_related("own_version__environment")
    build = builds.filter(pk=order, ended_at=None).first()
    if build is None or attempt != BUILD_ATTEMPT:
        return None
    version = build.own_version or catalog.locked_version(EnvironmentRef(build.name, build.version), None)
    if version is None:
        return None
    return OrderFiles(version, with_build_files=build.purpose == BuildPurpose.MAKE)


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
    return catalog.locked_version(ref, row.run.workspace)


def order_of_ticket(header: str) -> tuple[str, int] | None:
    """Returns order and attempt of the ticket in a header Authorization, where it is the password of Basic or
    a Bearer token; None without a valid one."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() == "basic":
        try:
            text = base64.b64decode(text.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return None
    elif scheme.lower() != "bearer":
        return None
    match = _TICKET.match(text.strip())
    if match is None:
        return None
    order, attempt = match[1], int(match[2])
    is_valid = hmac.compare_digest(match[0], package_ticket(order, attempt))
    return (order, attempt) if is_valid else None
