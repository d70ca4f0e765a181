"""Environments that are a container image: the registry says which one the reference means, and nodes pull
exactly that one."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

from environments.errors import Unresolvable
from environments.images.image_lock import read_image_lock
from environments.images.locking import lock_image, pinned_reference
from environments.images.reference import FIELD, parse_reference
from environments.images.registry_error import RegistryError
from environments.images.source import SECRET_FIELD, ImageSource, read_image_source
from environments.lock_file import LockedPackage
from environments.models import EnvironmentVersion
from trainhub_launch.fields import Fields
from trainhub_launch.machine import CONTAINERS
from trainhub_launch.order import EnvironmentSpec


class ImageKind:
    field = FIELD
    has_python = False
    capabilities = frozenset({CONTAINERS})

    def read_body(self, fields: Fields) -> str:
        return ImageSource(fields.text(FIELD, required=True), fields.text(SECRET_FIELD)).text

    def check(self, source: str) -> None:
        read_image_source(source)

    def named_packages(self, source: str) -> tuple[str, ...]:
        return (read_image_source(source).image,)

    def make_lock(self, version: EnvironmentVersion) -> str:
        try:
            return lock_image(version).text
        except RegistryError as error:
            raise Unresolvable(str(error)) from error

    def locked_packages(self, lock: str) -> tuple[LockedPackage, ...]:  # noqa: ARG002 - of every kind
        """None: what is inside an image is not known without pulling it."""
        return ()

    def node_spec(self, version: EnvironmentVersion) -> EnvironmentSpec:
        lock = read_image_lock(version.lock)
        reference = parse_reference(lock.reference)
        return EnvironmentSpec(
            name=version.environment.name,
            version=str(version.number),
            kind="image",
            image={
                "reference": read_image_source(version.source).image,
                "digest": lock.digest,
                "pull": pinned_reference(reference, lock.digest, settings.IMAGE_REGISTRY),
                "environment": list(lock.environment),
                "working_dir": lock.working_dir,
            },
        )

    def version_files(self, version: EnvironmentVersion) -> Mapping[str, str]:
        lock = {"image.lock.json": version.lock} if version.lock else {}
        return {"image.txt": version.source} | lock
