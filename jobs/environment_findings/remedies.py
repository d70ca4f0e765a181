"""Addresses of the form for an environment, filled in with a change. Opening one changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from django.urls import reverse

from environments.catalog import SYSTEM, own_version
from environments.curated import BY_NAME, CURATED
from environments.projects.source_text import is_project
from environments.states import EnvironmentKind
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import EnvironmentRef
from workspaces.models import Workspace


def change_link(
    workspace: Workspace, ref: EnvironmentRef, requirements: Sequence[str] = (), python: str = ""
) -> str:
    """Returns the address at which a next version of the workspace's own environment, or a changed copy of
    the curated one, has these requirements (instead of those of the same packages) and this Python; "" if
    none can be made here."""
    changes = [("add", requirement) for requirement in requirements] + [("python", python)] * bool(python)
    if ref.name in BY_NAME:
        return f"{reverse('environment-new')}?{urlencode([('like', ref.name), *changes])}"
    if ref.name == SYSTEM:
        return ""
    try:
        version = own_version(ref, workspace)
    except SpecError:
        return ""
    # A project is changed in its own files, not by a line of requirements.
    if version.kind != EnvironmentKind.PIP or is_project(version.source):
        return ""
    address = reverse("environment-edit", args=[version.environment.name])
    return f"{address}?{urlencode([('from', version.number), *changes])}"


def curated_with(*packages: str) -> str:
    """Returns the name of the first curated environment whose requirements have all the packages, or ""."""
    for environment in CURATED:
        names = {requirement.partition("==")[0] for requirement in environment.requirements}
        if names.issuperset(packages):
            return environment.name
    return ""
