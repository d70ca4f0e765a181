"""Fills the form for an environment in with a change that a finding or a failure proposes: `like` names the
curated environment to copy, each `add` a requirement, `python` a version."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest

from environments import changes
from environments.curated import BY_NAME
from environments.models import Environment
from environments.requirement_list import FIELD, with_requirement
from environments.states import EnvironmentKind
from jobs.environment_pages.version_form import VersionForm
from trainhub_launch.errors import SpecError
from workspaces.models import Workspace

MAX_CHANGES = 50
_RESERVED = "TrainHub-"


def prefill(request: HttpRequest, form: VersionForm, workspace: Workspace) -> VersionForm:
    """Returns the form with the changes that the address names, and an error about a wrong one. Makes
    nothing."""
    like, added = request.GET.get("like", ""), request.GET.getlist("add")
    python = request.GET.get("python", "")
    try:
        if like:
            form = _copy(like, form, workspace)
        if python:
            form = replace(form, python=changes.check_python(python))
        return _with_added(form, added)
    except SpecError as error:
        return form.with_error(error)


def _copy(name: str, form: VersionForm, workspace: Workspace) -> VersionForm:
    curated = BY_NAME.get(name)
    if curated is None or form.kind != EnvironmentKind.PIP:
        raise SpecError(
            "name", f"there is no curated environment {name!r:.100} to copy; open it under Environments"
        )
    source = "\n".join(curated.spec.requirements)
    return replace(form, name=_unused_name(name, workspace), source=source)


def _unused_name(curated: str, workspace: Workspace) -> str:
    """Returns a name for a copy that no environment of the workspace has: `pytorch-2.13`."""
    base = curated.removeprefix(_RESERVED).lower()
    taken = set(Environment.objects.filter(workspace=workspace).values_list("name", flat=True))
    candidates = (base, *(f"{base}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in candidates if name not in taken)


def _with_added(form: VersionForm, added: list[str]) -> VersionForm:
    if added and form.kind != EnvironmentKind.PIP:
        raise SpecError("name", "requirements can only be added to an environment made from requirements")
    if len(added) > MAX_CHANGES:
        raise SpecError(FIELD, f"at most {MAX_CHANGES} can be added at once; type the others")
    source = form.source
    for requirement in added:
        try:
            source = with_requirement(source, requirement.strip())
        except SpecError as error:
            message = error.message.partition(": ")[2] or error.message
            raise SpecError(FIELD, f"{requirement!r:.100} cannot be added: {message}") from error
    return replace(form, source=source)
