"""Makes environments and their versions. A version is resolved by the worker afterwards."""

from __future__ import annotations

import re
from typing import Protocol

from django.core.exceptions import PermissionDenied
from django.db import transaction

from clusters.task_messages import send_task_soon
from environments.catalog import SYSTEM
from environments.kinds.all_kinds import kind_named
from environments.kinds.kind import Kind
from environments.models import Environment, EnvironmentVersion
from environments.node_pythons import PYTHON, default_python
from environments.states import VersionState
from trainhub_launch.errors import SpecError
from trainhub_launch.findings.environment import reserved
from workspaces import audit
from workspaces.access import Principal, lacking
from workspaces.models import Workspace
from workspaces.states import Role
from workspaces.task_names import TaskName

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
# Names that stand for something else in addresses and specs.
UNAVAILABLE_NAMES = (SYSTEM, "new")
MAX_ENVIRONMENTS = 500
MAX_VERSIONS = 1000
MAX_RESOLVING = 5


class Source(Protocol):
    """What a clone is made from."""

    @property
    def kind(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def python(self) -> str: ...


def check_name(name: str, field: str = "name") -> str:
    """Returns the name without white space around it. Raises SpecError if no environment may have it."""
    name = name.strip()
    if not NAME.match(name):
        raise SpecError(
            field,
            "must have 1 to 100 letters, digits, '.', '_' and '-', and begin with a letter or digit, such as "
            "digits-torch",
        )
    if name.lower() in UNAVAILABLE_NAMES:
        raise SpecError(field, f"{name!r} has a meaning of its own here; choose another name")
    if sentence := reserved(name):
        raise SpecError(field, sentence)
    return name


def check_python(python: str) -> str:
    """Returns the version of Python. Raises SpecError if it is not like "3.11"."""
    if not PYTHON.match(python):
        raise SpecError("python", f"{python!r:.50} is not a minor version of Python; give one such as 3.11")
    return python


def create_version(
    principal: Principal, name: str, kind_name: str, source: str, python: str = ""
) -> EnvironmentVersion:
    """Makes the next version of the environment, and the environment if there is none of that name; the
    worker then resolves it. `python`: "" for that of the newest version, or of most nodes.

    Raises SpecError, and PermissionDenied."""
    if not principal.may(Role.CONTRIBUTOR):
        raise PermissionDenied(lacking(principal, Role.CONTRIBUTOR))
    name = check_name(name)
    kind = kind_named(kind_name)
    kind.check(source)
    chosen = check_python(python) if python else ""
    if chosen and not kind.has_python:
        raise SpecError("python", f"the source of an environment of kind {kind_name!r} says it; leave it out")
    with transaction.atomic():
        # Of two requests at once with the same name, each makes a version.
        workspace = Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
        environment = _environment(workspace, name, principal)
        newest = environment.versions.order_by("-number").first()
        _check_counts(workspace, environment, kind.field)
        environment.last_version += 1
        environment.save(update_fields=["last_version"])
        version = EnvironmentVersion.objects.create(
            environment=environment,
            number=environment.last_version,
            kind=kind_name,
            source=source,
            python=_python(kind, chosen, newest, workspace),
            created_by=principal.user,
        )
        audit.record(
            principal.user,
            "environment.version",
            str(version),
            workspace,
            python=version.python,
            kind=kind_name,
        )
        send_task_soon(TaskName.RESOLVE_ENVIRONMENT, version.pk)
    return version


def clone(principal: Principal, source: Source, new_name: str) -> EnvironmentVersion:
    """Makes an environment with the source of another one. Raises SpecError, also if the name is taken, and
    PermissionDenied."""
    new_name = check_name(new_name, "new_name")
    if Environment.objects.filter(workspace=principal.workspace, name=new_name).exists():
        raise SpecError("new_name", f"there is an environment {new_name!r} already; choose another name")
    return create_version(principal, new_name, source.kind, source.source, source.python)


def _python(kind: Kind, chosen: str, newest: EnvironmentVersion | None, workspace: Workspace) -> str:
    if not kind.has_python:
        return ""
    return chosen or (newest.python if newest else "") or default_python(workspace)


def _environment(workspace: Workspace, name: str, principal: Principal) -> Environment:
    existing = Environment.objects.filter(workspace=workspace, name=name).first()
    if existing is not None and existing.deleted_at is not None:
        raise SpecError(
            "name", f"there was an environment {name!r}, which runs still name; choose another name"
        )
    if existing is not None:
        return existing
    own = Environment.objects.filter(workspace=workspace, deleted_at=None)
    if own.count() >= MAX_ENVIRONMENTS:
        raise SpecError(
            "name", f"there are {MAX_ENVIRONMENTS} environments already; make a version of one of them"
        )
    environment = Environment.objects.create(workspace=workspace, name=name, created_by=principal.user)
    audit.record(principal.user, "environment.create", name, workspace)
    return environment


def _check_counts(workspace: Workspace, environment: Environment, field: str) -> None:
    if environment.last_version >= MAX_VERSIONS:
        raise SpecError("name", f"{environment.name} has {MAX_VERSIONS} versions; clone it to a new name")
    resolving = EnvironmentVersion.objects.filter(
        environment__workspace=workspace, state=VersionState.RESOLVING
    ).count()
    if resolving >= MAX_RESOLVING:
        raise SpecError(
            field,
            f"{resolving} versions of this workspace are being resolved; wait until one of them is done",
        )
