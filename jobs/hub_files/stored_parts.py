"""How many of the files that nodes need for a version the hub has stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from environments.images import image_store
from environments.images.image_lock import read_image_lock
from environments.images.manifest import Layer
from environments.models import EnvironmentVersion, LockedFile
from environments.packages import package_store
from environments.states import IMAGE_KINDS, EnvironmentKind
from jobs.hub_files.models import FileFetch
from jobs.hub_files.states import FetchState

NONE, IMAGES, ALL = "NONE", "IMAGES", "ALL"
AHEAD_WITHIN = timedelta(days=1)


@dataclass(frozen=True)
class HubFiles:
    """`noun`: what a file is called; `bytes` and `stored_bytes`: as far as their sizes are known. `fetch`:
    the last order to fetch the missing ones, None if there was none; `is_expected`: there will be one in a
    moment."""

    noun: str
    files: int
    stored: int
    bytes: int
    stored_bytes: int
    fetch: FileFetch | None
    is_expected: bool

    @property
    def are_complete(self) -> bool:
        return self.stored == self.files

    @property
    def is_fetching(self) -> bool:
        is_active = self.fetch.is_active if self.fetch else self.is_expected
        return is_active and not self.are_complete

    @property
    def arrived_bytes(self) -> int:
        """Returns the stored bytes, and those of files that are on their way."""
        arriving = self.fetch.arriving_bytes if self.is_fetching and self.fetch else 0
        return min(self.bytes, self.stored_bytes + arriving)

    @property
    def state(self) -> str:
        if self.fetch:
            return self.fetch.state
        return FetchState.WAITING if self.is_fetching else ""

    @property
    def failure(self) -> str:
        return self.fetch.failure if self.fetch and not self.are_complete else ""


def hub_files_of(version: EnvironmentVersion) -> HubFiles | None:
    """Returns None for a version that is not locked, and for one whose files nodes do not get from the
    hub."""
    if not version.is_locked:
        return None
    order = FileFetch.objects.filter(version=version).first()
    fetch = order, order is None and is_fetched_ahead(version)
    if version.kind in IMAGE_KINDS:
        if has_own_registry(version):
            return None
        layers = {layer.sha256: layer.size for layer in read_image_lock(version.lock).layers}
        sizes = image_store.stored_sizes_of_image(version.environment.owner, layers)
        return _counted("layer", layers, sizes, fetch)
    files = needed_packages(version)
    if not files:
        return None
    stored = package_store.stored_sizes(files)
    return _counted("package", {file.sha256: file.size_bytes for file in files}, stored, fetch)


def is_fetched_ahead(version: EnvironmentVersion) -> bool:
    """Returns whether the hub orders by itself to fetch the files of the version, which is locked. Versions
    that were locked longer ago, perhaps by a hub that did not do so, stay as they are."""
    if version.resolved_at is None or version.resolved_at < timezone.now() - AHEAD_WITHIN:
        return False
    return version.kind in kinds_fetched_ahead() and version.environment.deleted_at is None


def kinds_fetched_ahead() -> list[EnvironmentKind]:
    """Returns the kinds of environments whose files the installation wants on the hub before a node needs
    them. A Dockerfile's image comes to the hub before its version is locked."""
    images = [] if settings.IMAGE_REGISTRY else [EnvironmentKind.IMAGE]
    packages = [EnvironmentKind.PIP, EnvironmentKind.CONDA]
    return {NONE: [], IMAGES: images, ALL: [*images, *packages]}[settings.FETCH_ENVIRONMENT_FILES]


def has_own_registry(version: EnvironmentVersion) -> bool:
    """Returns whether nodes pull the image from the team's own registry instead of the hub."""
    return bool(settings.IMAGE_REGISTRY) and version.kind == EnvironmentKind.IMAGE


def missing_layers(version: EnvironmentVersion) -> list[Layer]:
    layers = {layer.sha256: layer for layer in read_image_lock(version.lock).layers}
    stored = image_store.stored_sizes_of_image(version.environment.owner, layers)
    return [layer for sha256, layer in layers.items() if sha256 not in stored]


def missing_packages(version: EnvironmentVersion) -> list[LockedFile]:
    files = needed_packages(version)
    stored = package_store.stored_sizes(files)
    return [file for file in files if file.sha256 not in stored]


def needed_packages(version: EnvironmentVersion) -> list[LockedFile]:
    """Returns the files of the packages that the usual node installs."""
    files = version.files.filter(is_preferred=True, is_for_build=False)
    return list(files.select_related("version__environment__workspace").order_by("filename"))


def _counted(
    noun: str, sizes: dict[str, int], stored: dict[str, int], fetch: tuple[FileFetch | None, bool]
) -> HubFiles:
    """`sizes`: of all files by SHA-256, 0 if not known; `stored`: of those that the hub has; `fetch`: the
    last order, and whether one is expected."""
    known_sizes = {sha256: size or stored.get(sha256, 0) for sha256, size in sizes.items()}
    stored_bytes = sum(size for sha256, size in known_sizes.items() if sha256 in stored)
    return HubFiles(noun, len(known_sizes), len(stored), sum(known_sizes.values()), stored_bytes, *fetch)
