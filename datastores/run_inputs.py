"""What the inputs of a spec mean: where they lie on the nodes, or from where the nodes download them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from django.db.models import F, OuterRef, Q, Subquery

from datastores.models import Dataset, DatasetVersion, Datastore
from datastores.states import ListingState
from trainhub_launch.data.downloads import DataDownload, InputList
from trainhub_launch.data.shares import NFS, InputMount
from trainhub_launch.data.store_signing import find_signing_problem
from trainhub_launch.data.stores import HUB
from trainhub_launch.errors import SpecError
from trainhub_launch.json_types import JsonObject
from trainhub_launch.machine import HUB_DATA, MOUNTS
from trainhub_launch.spec import DOWNLOAD, MOUNT, REFERENCE, DataInput, RunSpec
from workspaces.models import Workspace

# Why scripts get no addresses, as it follows the name of a datastore.
IS_FOLDER = "is a folder of the nodes, which scripts read where it is: leave mode out, and they get its path"
IS_SHARE = "is a share that nodes mount, where scripts read it: leave mode out, and they get its path"
IS_ON_HUB = "lies on the hub, which gives its files to nodes alone: leave mode out, and they download it"
# So many names an error lists.
MAX_NAMED = 20
# What nodes need for data of a kind, besides what each input needs.
KIND_CAPABILITIES = {HUB: HUB_DATA, NFS: MOUNTS}
# So many of the newest numbers of each dataset a page offers.
MAX_OFFERED = 5


@dataclass(frozen=True)
class InputPlaces:
    """The inputs of a spec by name: `paths` of those that lie on the nodes, `mounts` of those in shares that
    they mount, both with the `lists` of the files of some; `references`: those of which scripts get
    addresses; `downloads` of the others; `versions` of the datasets among them. `problems`: what is wrong
    with the rest."""

    paths: dict[str, str] = field(default_factory=dict)
    mounts: dict[str, InputMount] = field(default_factory=dict)
    downloads: dict[str, DataDownload] = field(default_factory=dict)
    references: dict[str, DataDownload] = field(default_factory=dict)
    lists: dict[str, InputList] = field(default_factory=dict)
    versions: dict[str, DatasetVersion] = field(default_factory=dict)
    problems: list[SpecError] = field(default_factory=list)

    def to_columns(self) -> dict[str, JsonObject]:
        """Returns what an attempt keeps of them, by the name of its column."""
        return {
            "inputs": dict(self.paths),
            "mounts": {name: mount.to_json() for name, mount in self.mounts.items()},
            "downloads": {name: download.to_json() for name, download in self.downloads.items()},
            "references": {name: item.to_json() for name, item in self.references.items()},
            "input_lists": {name: listed.to_json() for name, listed in self.lists.items()},
        }


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
            if data_input.dataset:
                _add_version(places, name, data_input, _version(name, data_input, workspace))
            elif datastore is None:
                raise SpecError(
                    f"inputs.{name}.datastore", missing_datastore(data_input.datastore, workspace)
                )
            else:
                _add(places, name, data_input, datastore)
        except SpecError as error:
            places.problems.append(error)
    return places


def with_choices(spec: RunSpec, workspace: Workspace) -> RunSpec:
    """Returns the spec in which each input says how it reaches the script, as its datastore allows, and which
    version of a dataset it is: the newest one, if the dataset has any."""
    if all(_is_chosen(data_input) for data_input in spec.inputs.values()):
        return spec
    datastores = _datastores(spec, workspace)
    inputs = {
        name: _chosen(data_input, datastores.get(data_input.datastore), workspace)
        for name, data_input in spec.inputs.items()
    }
    return replace(spec, inputs=inputs)


def input_capabilities(spec: RunSpec, workspace: Workspace) -> frozenset[str]:
    """Returns what nodes must be able to do for the inputs besides what the spec itself says. One query, or
    none without inputs."""
    if not spec.inputs:
        return frozenset()
    datasets = [item.dataset for item in spec.inputs.values() if item.dataset]
    stores = [item.datastore for item in spec.inputs.values() if item.datastore]
    named = Q(name__in=stores) | Q(datasets__name__in=datasets)
    kinds = Datastore.objects.filter(named, workspace=workspace, kind__in=KIND_CAPABILITIES)
    return frozenset(KIND_CAPABILITIES[kind] for kind in kinds.values_list("kind", flat=True))


def dataset_versions(spec: RunSpec, workspace: Workspace) -> dict[str, DatasetVersion]:
    """Returns the versions that inputs name, by the input. Raises SpecError for one that is not there."""
    return {name: _version(name, item, workspace) for name, item in spec.inputs.items() if item.dataset}


def version_download(version: DatasetVersion) -> DataDownload:
    """Returns how nodes download a ready version."""
    datastore = version.dataset.datastore
    return DataDownload(
        datastore.store,
        version.full_path,
        datastore.secret,
        _scope(datastore),
        version.manifest.sha256,
        version.is_file,
    )


def dataset_choices(workspace: Workspace) -> list[tuple[str, int | None]]:
    """Returns (name, number) of the newest versions that runs can read, of each dataset; before them
    without a number, which is always the newest one."""
    ready = DatasetVersion.objects.filter(dataset__workspace=workspace, state=ListingState.READY)
    newest = ready.filter(dataset=OuterRef("dataset")).order_by("-number").values("number")[:1]
    ready = ready.annotate(newest=Subquery(newest)).filter(number__gt=F("newest") - MAX_OFFERED)
    numbers: dict[str, list[int]] = {}
    for name, number in ready.order_by("dataset__name", "-number").values_list("dataset__name", "number"):
        numbers.setdefault(name, []).append(number)
    return [(name, number) for name, listed in numbers.items() for number in (None, *listed)]


def datastore_names(workspace: Workspace) -> list[str]:
    return list(Datastore.objects.filter(workspace=workspace).values_list("name", flat=True))


def _datastores(spec: RunSpec, workspace: Workspace) -> Mapping[str, Datastore]:
    if not spec.inputs:
        return {}
    names = {data_input.datastore for data_input in spec.inputs.values() if data_input.datastore}
    rows = Datastore.objects.filter(workspace=workspace, name__in=names)
    return {datastore.name: datastore for datastore in rows}


def _is_chosen(data_input: DataInput) -> bool:
    return bool(data_input.mode) and (not data_input.dataset or data_input.version is not None)


def _chosen(data_input: DataInput, datastore: Datastore | None, workspace: Workspace) -> DataInput:
    if not data_input.dataset:
        return replace(data_input, mode=data_input.mode or _mode(datastore))
    number = data_input.version or _newest(data_input.dataset, workspace)
    place = Datastore.objects.filter(datasets__workspace=workspace, datasets__name=data_input.dataset).first()
    mode = DOWNLOAD if place is None else _mode(place)
    return replace(data_input, mode=data_input.mode or mode, version=number)


def _newest(dataset: str, workspace: Workspace) -> int | None:
    versions = DatasetVersion.objects.filter(
        dataset__workspace=workspace, dataset__name=dataset, state=ListingState.READY
    )
    return versions.order_by("-number").values_list("number", flat=True).first()


def _version(name: str, data_input: DataInput, workspace: Workspace) -> DatasetVersion:
    """Returns the version that the input names. Raises SpecError unless runs can read it."""
    dataset = Dataset.objects.filter(workspace=workspace, name=data_input.dataset).first()
    if dataset is None:
        listed = Dataset.objects.filter(workspace=workspace).values_list("name", flat=True)
        there = ", ".join(listed[:MAX_NAMED]) or "none yet"
        raise SpecError(
            f"inputs.{name}.dataset",
            f"there is no dataset {data_input.dataset!r} in {workspace}; there are: {there}. Make one on "
            "the page Data",
        )
    number = data_input.version or _newest(data_input.dataset, workspace)
    version = (
        dataset.versions.select_related("dataset__datastore", "manifest").filter(number=number or 0).first()
    )
    if version is not None and version.is_ready:
        return version
    ready = dataset.versions.filter(state=ListingState.READY).order_by("-number")
    there = ", ".join(map(str, ready.values_list("number", flat=True)[:MAX_NAMED])) or "none yet"
    which = (
        f"version {data_input.version} of {dataset}" if data_input.version else f"any version of {dataset}"
    )
    state = "" if version is None else f", which is {version.state}"
    raise SpecError(
        f"inputs.{name}.version", f"the hub has no list of {which}{state}; those with a list are: {there}"
    )


def _add_version(places: InputPlaces, name: str, data_input: DataInput, version: DatasetVersion) -> None:
    datastore = version.dataset.datastore
    _check_mode(name, data_input, datastore)
    places.versions[name] = version
    if data_input.mode == REFERENCE:
        places.references[name] = version_download(version)
    elif datastore.is_mounted:
        _place(places, name, datastore, version.full_path)
        places.lists[name] = InputList(version.manifest.sha256, version.is_file, data_input.uses_changed)
    else:
        download = version_download(version)
        places.downloads[name] = replace(download, uses_changed=data_input.uses_changed)


def _scope(datastore: Datastore) -> str:
    """What one workspace has downloaded proves nothing about what another one may read."""
    return f"workspace {datastore.workspace_id}"


def _mode(datastore: Datastore | None) -> str:
    return MOUNT if datastore is None or datastore.is_mounted else DOWNLOAD


def _check_mode(name: str, data_input: DataInput, datastore: Datastore) -> None:
    mode = _mode(datastore)
    if data_input.mode in ("", mode):
        return
    problem = f"is of the kind {datastore.kind}, which needs mode {mode!r}; leave mode out"
    if data_input.mode == REFERENCE:
        problem = _reference_problem(datastore)
    if problem:
        raise SpecError(f"inputs.{name}.mode", f"{datastore} {problem}")


def _reference_problem(datastore: Datastore) -> str:
    """Returns why scripts get no addresses of it, "" if they do. What depends on the value of a secret, the
    findings of a run say."""
    if datastore.is_mounted:
        return IS_FOLDER if datastore.is_folder else IS_SHARE
    return IS_ON_HUB if datastore.kind == HUB else find_signing_problem(datastore.store, "")


def _add(places: InputPlaces, name: str, data_input: DataInput, datastore: Datastore) -> None:
    _check_mode(name, data_input, datastore)
    path = datastore.path_of(data_input.path)
    if datastore.kind == HUB:
        raise SpecError(
            f"inputs.{name}.datastore",
            f"the files of {datastore.name} belong to datasets: name one of them as dataset instead",
        )
    if datastore.is_mounted:
        _place(places, name, datastore, path)
        return
    if not path and datastore.kind == "http":
        raise SpecError(
            f"inputs.{name}.path",
            f"must name a file of {datastore.name}: a web server cannot be asked which files it has",
        )
    items = places.references if data_input.mode == REFERENCE else places.downloads
    items[name] = DataDownload(datastore.store, path, datastore.secret, _scope(datastore))


def _place(places: InputPlaces, name: str, datastore: Datastore, path: str) -> None:
    """`path`: the whole one, of a datastore whose files are read where they lie."""
    if datastore.is_folder:
        places.paths[name] = path
    else:
        places.mounts[name] = InputMount(datastore.share, path)


def missing_datastore(name: str, workspace: Workspace) -> str:
    """Returns what is wrong with the name of a datastore that the workspace does not have."""
    there = ", ".join(datastore_names(workspace)[:MAX_NAMED]) or "none yet"
    return f"there is no datastore {name!r} in {workspace}; there are: {there}. Add one on the page Data"
