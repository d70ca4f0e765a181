"""Where the inputs of a spec lie on the nodes."""

from __future__ import annotations

import posixpath

from datastores.models import Datastore
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec
from workspaces.models import Workspace

# So many names an error lists.
MAX_NAMED = 20


def input_paths(spec: RunSpec, workspace: Workspace) -> dict[str, str]:
    """Returns the absolute path of each input, by its name. Raises SpecError for the first one whose
    datastore does not exist. One query, or none without inputs."""
    paths, problems = look_up(spec, workspace)
    if problems:
        raise problems[0]
    return paths


def look_up(spec: RunSpec, workspace: Workspace) -> tuple[dict[str, str], list[SpecError]]:
    """Returns the absolute paths of the inputs by name, and what is wrong with the others."""
    if not spec.inputs:
        return {}, []
    names = {data_input.datastore for data_input in spec.inputs.values()}
    folders = dict(Datastore.objects.filter(workspace=workspace, name__in=names).values_list("name", "path"))
    paths, problems = {}, []
    for name, data_input in spec.inputs.items():
        if data_input.datastore in folders:
            paths[name] = posixpath.join(folders[data_input.datastore], data_input.path).rstrip("/")
        else:
            problems.append(SpecError(f"inputs.{name}.datastore", _unknown(data_input.datastore, workspace)))
    return paths, problems


def datastore_names(workspace: Workspace) -> list[str]:
    return list(Datastore.objects.filter(workspace=workspace).values_list("name", flat=True))


def _unknown(name: str, workspace: Workspace) -> str:
    there = ", ".join(datastore_names(workspace)[:MAX_NAMED]) or "none yet"
    return f"there is no datastore {name!r} in {workspace}; there are: {there}. Add one on the page Data"
