"""The ticket of an order: with it a node pulls the image of the order from the hub.

It names its run or build, its attempt and node, and is derived from the secret key, so that none is stored.
It opens this one image only, until the node's part of the attempt is over."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from environments.catalog import own_version
from environments.images.image_lock import ImageLock, read_image_lock
from environments.models import EnvironmentVersion
from environments.states import IMAGE_KINDS, EnvironmentKind
from jobs.builds.models import BUILD_ATTEMPT, is_build_id
from jobs.models import AttemptNode, EnvironmentBuild
from trainhub_launch.errors import SpecError
from trainhub_launch.order import ImageRegistry
from trainhub_launch.spec_reader import read_spec
from workspaces.models import Workspace

PREFIX = "thi"
FOLDER = "env"
PORTS = {"http": 80, "https": 443}
# Runs and builds have ids of 32 hexadecimal digits.
_TICKET = re.compile(rf"{PREFIX}_([0-9a-f]{{32}})_([0-9]{{1,9}})_([0-9]{{1,18}})_[A-Za-z0-9_-]{{43}}\Z")


@dataclass(frozen=True)
class OrderedImage:
    """The image that an order names."""

    version: EnvironmentVersion
    workspace: Workspace
    lock: ImageLock


def image_ticket(order: str, attempt: int, node_id: int) -> str:
    key = hashlib.sha256(b"trainhub image ticket\0" + settings.SECRET_KEY.encode()).digest()
    mac = hmac.new(key, f"{order}/{attempt}/{node_id}".encode(), hashlib.sha256).digest()
    code = base64.urlsafe_b64encode(mac).decode().rstrip("=")
    return f"{PREFIX}_{order}_{attempt}_{node_id}_{code}"


def registry_of_part(part: AttemptNode, hub_url: str) -> ImageRegistry | None:
    """Returns where the node pulls the image of its part from; None if its environment is no image, or if the
    installation has a registry of its own that has it."""
    ticket = image_ticket(part.attempt.run_id, part.attempt.number, part.node_id)
    return _registry(_image_version(part), ticket, hub_url)


def registry_of_build(build: EnvironmentBuild, hub_url: str) -> ImageRegistry | None:
    """Returns where the node of a build pulls the image from, likewise."""
    ticket = image_ticket(build.pk, BUILD_ATTEMPT, build.node_id)
    return _registry(_image_only(build.own_version), ticket, hub_url)


def _registry(version: EnvironmentVersion | None, ticket: str, hub_url: str) -> ImageRegistry | None:
    if version is None:
        return None
    # An image that a node has built is on the hub only.
    if settings.IMAGE_REGISTRY and version.kind == EnvironmentKind.IMAGE:
        return None
    url = urlsplit(hub_url)
    host = url.hostname or ""
    host = f"[{host}]" if ":" in host else host
    # Always with the port: docker takes a host without one, and without a dot, for a folder of Docker Hub.
    address = f"{host}:{url.port or PORTS[url.scheme]}/{FOLDER}/{version.pk}"
    return ImageRegistry(address, ticket)


def image_of_ticket(ticket: str) -> OrderedImage | None:
    """Returns what the ticket opens at present, or None if it opens nothing (any more)."""
    match = _TICKET.match(ticket)
    if match is None:
        return None
    order, attempt, node_id = match[1], int(match[2]), int(match[3])
    if not hmac.compare_digest(ticket, image_ticket(order, attempt, node_id)):
        return None
    if is_build_id(order):
        return _image_of_build(order, node_id)
    return _image_of_part(order, attempt, node_id)


def _image_of_part(run_id: str, attempt: int, node_id: int) -> OrderedImage | None:
    part = (
        AttemptNode.objects.select_related("attempt__run__workspace")
        .filter(
            attempt__run_id=run_id,
            attempt__number=attempt,
            attempt__run__attempt=attempt,
            attempt__ended_at=None,
            node_id=node_id,
            node__revoked_at=None,
            settled_at=None,
        )
        .exclude(claimed_at=None)
        .first()
    )
    version = _image_version(part) if part else None
    if part is None or version is None:
        return None
    return OrderedImage(version, part.attempt.run.workspace, read_image_lock(version.lock))


def _image_of_build(build_id: str, node_id: int) -> OrderedImage | None:
    build = (
        EnvironmentBuild.objects.select_related("workspace", "own_version")
        .filter(pk=build_id, node_id=node_id, node__revoked_at=None, ended_at=None)
        .exclude(claimed_at=None)
        .first()
    )
    version = _image_only(build.own_version) if build else None
    if build is None or build.workspace is None or version is None:
        return None
    return OrderedImage(version, build.workspace, read_image_lock(version.lock))


def _image_only(version: EnvironmentVersion | None) -> EnvironmentVersion | None:
    is_image = version is not None and version.is_locked and version.kind in IMAGE_KINDS
    return version if is_image else None


def _image_version(part: AttemptNode) -> EnvironmentVersion | None:
    run = part.attempt.run
    try:
        version = own_version(read_spec(run.spec).environment, run.workspace)
    except SpecError:
        # A curated environment, or an interpreter of the node.
        return None
    return _image_only(version)
