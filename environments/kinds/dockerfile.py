"""Environments made from a Dockerfile: a node builds the image, the hub keeps it, and nodes pull it from the
hub as an environment of kind `image`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from environments.dockerfiles.built_image import has_part, lock_built_image
from environments.dockerfiles.checks import read_dockerfile
from environments.dockerfiles.instructions import FIELD
from environments.dockerfiles.source import (
    join_dockerfile,
    read_dockerfile_source,
    split_dockerfile,
)
from environments.dockerfiles.written import BASE_FIELD, DEBIAN_FIELD, FIELDS, PIP_FIELD, write_dockerfile
from environments.errors import NeedsNode, Unresolvable
from environments.images.image_lock import read_image_lock
from environments.images.locking import pinned_reference, take_login
from environments.images.reference import parse_reference
from environments.images.registry_error import RegistryError
from environments.images.source import SECRET_FIELD
from environments.lock_file import LockedPackage
from environments.models import EnvironmentVersion
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.machine import CONTAINERS, IMAGE_BUILDS
from trainhub_launch.order import EnvironmentSpec


class DockerfileKind:
    field = FIELD
    has_python = False
    capabilities = frozenset({CONTAINERS})
    making_capability = IMAGE_BUILDS

    def read_body(self, fields: Fields) -> str:
        # Not as a text of a process: a Dockerfile has a limit of its own.
        text, base = fields.raw(FIELD, ""), fields.text(BASE_FIELD)
        if not isinstance(text, str):
            raise SpecError(FIELD, "must be a string: the text of the Dockerfile")
        pip, debian = (_lines(fields, name) for name in (PIP_FIELD, DEBIAN_FIELD))
        secret = fields.text(SECRET_FIELD).strip()
        if text.strip() and (base or pip or debian):
            raise SpecError(FIELD, f"give either {FIELD}, or {', '.join(FIELDS)}, from which it is written")
        if text.strip():
            return join_dockerfile(text, secret)
        if not base:
            raise SpecError(FIELD, f"is required: the text of a Dockerfile, or a {BASE_FIELD} and packages")
        return join_dockerfile(write_dockerfile(base, pip, debian), secret)

    def check(self, source: str) -> None:
        read_dockerfile_source(source)

    def named_packages(self, source: str) -> tuple[str, ...]:
        try:
            return read_dockerfile(split_dockerfile(source).dockerfile).bases
        except SpecError:
            # Made by a hub with other rules.
            return ()

    def make_lock(self, version: EnvironmentVersion) -> NoReturn:
        source = split_dockerfile(version.source)
        images = read_dockerfile(source.dockerfile).images
        registries = dict.fromkeys(parse_reference(image).api_host for image in images)
        draft: dict[str, object] = {
            "kind": FIELD,
            "dockerfile": source.dockerfile,
            "registries": list(registries),
        }
        if source.registry_secret:
            try:
                # A node would find out only after it was ordered.
                take_login(version, source.registry_secret)
            except RegistryError as error:
                raise Unresolvable(str(error)) from error
            draft["has_registry_login"] = True
        raise NeedsNode(draft)

    def has_file(self, version: EnvironmentVersion, sha256: str) -> bool:
        return has_part(version, sha256)

    def earlier_result(self, version: EnvironmentVersion) -> str:  # noqa: ARG002
        return ""

    def awaits_other(self, version: EnvironmentVersion) -> bool:  # noqa: ARG002
        # Each has an image of its own: the same lines may fetch something else the next time.
        return False

    def accept_result(
        self, version: EnvironmentVersion, result: Mapping[str, Any], files: Mapping[str, int]
    ) -> str:
        return lock_built_image(version, result, files).text

    def locked_packages(self, lock: str) -> tuple[LockedPackage, ...]:  # noqa: ARG002 - of every kind
        """None: what is inside an image is not known without pulling it."""
        return ()

    def node_spec(self, version: EnvironmentVersion) -> EnvironmentSpec:
        lock = read_image_lock(version.lock)
        return EnvironmentSpec(
            name=version.environment.name,
            version=str(version.number),
            kind="image",
            image={
                "reference": f"{version.environment.name}:{version.number}",
                "digest": lock.digest,
                "pull": pinned_reference(parse_reference(lock.reference), lock.digest, ""),
                "environment": list(lock.environment),
                "working_dir": lock.working_dir,
            },
        )

    def version_files(self, version: EnvironmentVersion) -> Mapping[str, str]:
        lock = {"image.lock.json": version.lock} if version.lock else {}
        return {"Dockerfile": version.source} | lock


def _lines(fields: Fields, name: str) -> list[str]:
    lines = fields.raw(name, [])
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise SpecError(name, 'must be a list of lines, such as ["git"]')
    return lines
