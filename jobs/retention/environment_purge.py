"""Deletes environments that only deleted runs still named, and files of versions that nobody has used for
long. Never what a kept run, or the certificate of a model, names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from environments.images.image_lock import read_image_lock
from environments.models import Environment, EnvironmentVersion, ImageBlob, LockedFile, PackageFile
from environments.states import EnvironmentKind, VersionState
from jobs.models import PreparedEnvironment, Run
from jobs.querysets import RunQuerySet

log = logging.getLogger(__name__)
BATCH = 500
# Workspace id, name and version of an environment.
EnvironmentKey = tuple[int, str, str]


def purge_environments(certified: Callable[[], set[EnvironmentKey]], now: datetime | None = None) -> None:
    """Deletes environments that were deleted PURGE_DAYS ago, once nothing names them. With
    ENVIRONMENT_FILE_DAYS, also removes the files of other versions that were not used for so long: nodes get
    them again through the hub if their index or registry still has them. `certified` returns the
    environments that certificates name."""
    moment = now or timezone.now()
    until = moment - timedelta(days=settings.PURGE_DAYS)
    hidden = list(Environment.objects.filter(deleted_at__lte=until))
    unused = _unused_versions(moment)
    if not hidden and not unused:
        return
    certificates = certified()
    for environment in hidden:
        key = environment.workspace_id, environment.name
        if not (key in {item[:2] for item in certificates} or _runs_with(environment).exists()):
            environment.delete()
            log.info("The environment %s, which nothing names any more, is gone for good", environment.name)
    _release_files([version for version in unused if not _is_named(version, certificates)], moment)


def _unused_versions(now: datetime) -> list[EnvironmentVersion]:
    """Returns the locked versions that no node has prepared within ENVIRONMENT_FILE_DAYS; none if it is 0."""
    if not settings.ENVIRONMENT_FILE_DAYS:
        return []
    until = now - timedelta(days=settings.ENVIRONMENT_FILE_DAYS)
    used = PreparedEnvironment.objects.filter(prepared_at__gt=until, own_version__isnull=False)
    versions = EnvironmentVersion.objects.filter(state=VersionState.LOCKED, resolved_at__lte=until)
    return list(versions.exclude(pk__in=used.values("own_version")).select_related("environment"))


def _is_named(version: EnvironmentVersion, certificates: set[EnvironmentKey]) -> bool:
    environment, number = version.environment, str(version.number)
    if (environment.workspace_id, environment.name, number) in certificates:
        return True
    return _runs_with(environment).filter(spec__environment__version=number).exists()


def _runs_with(environment: Environment) -> RunQuerySet:
    # Deleted runs that are not purged yet count, too: they can be restored.
    return Run.objects.filter(workspace=environment.workspace_id, spec__environment__name=environment.name)


def _release_files(versions: Iterable[EnvironmentVersion], now: datetime) -> None:
    """Deletes the rows of the files that only these versions name. The sweep of stored files deletes their
    bytes later."""
    unused = {version.pk: version for version in versions}
    if not unused:
        return
    until = now - timedelta(days=settings.ENVIRONMENT_FILE_DAYS)
    named: set[str] = set()
    candidates: set[str] = set()
    for version_id, sha256, url in LockedFile.objects.values_list("version_id", "sha256", "url").iterator():
        # A file without an address is on no index.
        (candidates if version_id in unused and url else named).add(sha256)
    files = sorted(candidates - named)
    for begin in range(0, len(files), BATCH):
        old = PackageFile.objects.filter(sha256__in=files[begin : begin + BATCH], fetched_at__lte=until)
        old.delete()
    for version in unused.values():
        if version.kind == EnvironmentKind.IMAGE:
            # The manifest and the configuration stay: they are small, and nodes ask for them first.
            layers = [layer.sha256 for layer in read_image_lock(version.lock).layers]
            ImageBlob.objects.filter(version=version, sha256__in=layers).delete()
