"""What the inputs of a spec mean: where they lie on the nodes, or from where the nodes download them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from datastores.models import Datastore
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import DOWNLOAD, MOUNT, DataInput, RunSpec
from workspaces.models import Workspace

# So many names an error lists.
MAX_NAMED = 20


@dataclass(frozen=True)
class InputPlaces:
    """The inputs of a spec by name: `paths` of those that lie on the nodes, and `downloads` of the others.
    `problems`: what is wrong with the rest."""

    paths: dict[str, str] = field(default_factory=dict)
    downloads: dict[str, DataDownload] = field(default_factory=dict)
    problems: list[SpecError] = field(default_factory=list)


def input_places(spec: RunSpec, workspace: Workspace) -> InputPlaces:
    """Returns where each input is. Raises SpecError for the first one whose datastore does not exist. One
    query, or none without inputs."""
    places = look_up(spec, workspace)
    if places.problems:
        raise places.problems[0]
    return places


def look_up(spec: RunSpec, workspace: Workspace) -> InputPlaces:
    """Like `input_places`, and returns what is wrong instead of raising it."""
    places = InputPlaces()
    datastores = _datastores(spec, workspace)
    for name, data_input in spec.inputs.items():
        datastore = datastores.get(data_input.datastore)
        try:
            if datastore is None:
                raise SpecError(f"inputs.{name}.datastore", _unknown(data_input.datastore, workspace))
            _add(places, name, data_input, datastore)
        except SpecError as error:
            places.problems.append(error)
    return places


def with_modes(spec: RunSpec, workspace: Workspace) -> RunSpec:
    """Returns the spec in which each input says how it reaches the script: as its datastore allows."""
    if all(data_input.mode for data_input in spec.inputs.values()):
        return spec
    datastores = _datastores(spec, workspace)
    inputs = {
        name: replace(data_input, mode=data_input.mode or _mode(datastores.get(data_input.datastore)))
        for name, data_input in spec.inputs.items()
    }
    return replace(spec, inputs=inputs)


def datastore_names(workspace: Workspace) -> list[str]:
    return list(Datastore.objects.filter(workspace=workspace).values_list("name", flat=True))


def _datastores(spec: RunSpec, workspace: Workspace) -> Mapping[str, Datastore]:
    if not spec.inputs:
        return {}
    names = {data_input.datastore for data_input in spec.inputs.values()}
    rows = Datastore.objects.filter(workspace=workspace, name__in=names)
    return {datastore.name: datastore for datastore in rows}


def _mode(datastore: Datastore | None) -> str:
    return MOUNT if datastore is None or datastore.is_folder else DOWNLOAD


def _add(places: InputPlaces, name: str, data_input: DataInput, datastore: Datastore) -> None:
    mode = _mode(datastore)
    if data_input.mode not in ("", mode):
        raise SpecError(
            f"inputs.{name}.mode",
            f"{datastore.name} is of the kind {datastore.kind}, which needs mode {mode!r}; leave mode out",
        )
    path = posixpath.join(datastore.path, data_input.path).rstrip("/")
    if datastore.is_folder:
        places.paths[name] = path
    elif not path and datastore.kind == "http":
        raise SpecError(
            f"inputs.{name}.path",
            f"must name a file of {datastore.name}: a web server cannot be asked which files it has",
        )
    else:
        # What one workspace has downloaded proves nothing about what another one may read.
        scope = f"workspace {datastore.workspace_id}"
        places.downloads[name] = DataDownload(datastore.store, path, datastore.secret, scope)


def _unknown(name: str, workspace: Workspace) -> str:
    there = ", ".join(datastore_names(workspace)[:MAX_NAMED]) or "none yet"
    return f"there is no datastore {name!r} in {workspace}; there are: {there}. Add one on the page Data"
