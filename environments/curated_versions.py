"""The curated environments as this hub has locked them. Each belongs to no workspace, and is locked once,
when a run or a person first needs it: from the hub's own index, which may have other files than the one that
the shipped locks are from."""

from __future__ import annotations

import logging
import tempfile

from django.db import transaction

from clusters.task_messages import send_task_soon
from environments.curated import BY_NAME, LOCK_PYTHON, CuratedSet, curated_lock
from environments.errors import Unresolvable
from environments.lock_file import pins_of
from environments.models import Environment, EnvironmentVersion
from environments.node_pythons import default_python, has_python
from environments.requirement_list import RequirementList
from environments.resolving.requirements import resolve_requirements
from environments.source_builds.wheel_maker import lock_requirements
from environments.states import EnvironmentKind, VersionState
from workspaces.task_names import TaskName

log = logging.getLogger(__name__)


def curated_source(item: CuratedSet) -> str:
    """Returns the requirements as the lines of a file."""
    return "".join(f"{requirement}\n" for requirement in item.spec.requirements)


def stored_curated(name: str) -> EnvironmentVersion | None:
    """Returns the hub's version of the curated environment, in whatever state; None until one was needed, and
    if there is no such environment."""
    item = BY_NAME.get(name)
    if item is None:
        return None
    versions = EnvironmentVersion.objects.select_related("environment", "created_by")
    return versions.filter(
        environment__workspace=None, environment__name=name, number=int(item.spec.version)
    ).first()


def locked_curated_sizes() -> dict[str, tuple[int | None, int | None]]:
    """Returns the number of packages and the bytes of their files, None if not known, for each curated
    environment that this hub has locked. One query."""
    rows = EnvironmentVersion.objects.filter(environment__workspace=None, state=VersionState.LOCKED)
    values = rows.values_list("environment__name", "number", "package_count", "download_bytes")
    return {
        name: (packages, size)
        for name, number, packages, size in values
        if name in BY_NAME and str(number) == BY_NAME[name].spec.version
    }


def demand_curated(name: str) -> EnvironmentVersion:
    """Returns the hub's version of the curated environment, in whatever state. Makes it if there is none: the
    worker then resolves it."""
    existing = stored_curated(name)
    if existing is not None:
        return existing
    item = BY_NAME[name]
    number = int(item.spec.version)
    with transaction.atomic():
        environment, _ = Environment.objects.get_or_create(workspace=None, name=name)
        version, is_new = EnvironmentVersion.objects.get_or_create(
            environment=environment,
            number=number,
            defaults={
                "kind": EnvironmentKind.PIP,
                "source": curated_source(item),
                "python": LOCK_PYTHON if has_python(LOCK_PYTHON) else default_python(None),
            },
        )
        if is_new:
            Environment.objects.filter(pk=environment.pk).update(last_version=number)
            send_task_soon(TaskName.RESOLVE_ENVIRONMENT, version.pk)
    return version


def resolve_again(version: EnvironmentVersion) -> None:
    """Has the worker resolve a version that has failed once more."""
    failed = EnvironmentVersion.objects.filter(pk=version.pk, state=VersionState.FAILED)
    values = {"state": VersionState.RESOLVING, "failure": "", "draft": "", "attempts": 0}
    if failed.update(**values, started_at=None, resolved_at=None):
        send_task_soon(TaskName.RESOLVE_ENVIRONMENT, version.pk)


def lock_curated(version: EnvironmentVersion, requirements: RequirementList) -> str:
    """Returns the lock: with the versions of packages of the shipped lock if the hub's index has all of them.
    Raises Unresolvable, and NeedsNode if a node must build a package first."""
    shipped = curated_lock(version.environment.name) if version.python == LOCK_PYTHON else ""
    if not shipped:
        return lock_requirements(version, requirements)
    with tempfile.NamedTemporaryFile("w", prefix="trainhub-pins-", suffix=".txt") as constraints:
        constraints.write("\n".join((*pins_of(shipped), "")))
        constraints.flush()
        try:
            return resolve_requirements(version, requirements, more={"UV_CONSTRAINT": constraints.name})
        except Unresolvable as error:
            log.info("%s is locked with other versions than the shipped ones: %s", version, error)
    return resolve_requirements(version, requirements)
