"""The data among the arguments of a run: inputs and outputs of its spec, and the texts that its processes
get."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from trainhub_azureml.data.consumption import DIRECT, DatasetConsumptionConfig, OutputFileDatasetConfig
from trainhub_azureml.data.data_files import clean_path
from trainhub_azureml.data.data_reference import (
    DOWNLOAD,
    MOUNT,
    PREFIX,
    DataReference,
    DataReferenceConfiguration,
    input_name,
)
from trainhub_azureml.data.datasets import AbstractDataset, FileDataset
from trainhub_azureml.data.datastore import Datastore
from trainhub_azureml.data.input_places import InputPlace, place_dataset
from trainhub_azureml.data.sources import StorePath, parse_sources
from trainhub_azureml.data.store_kinds import HUB, MOUNTED
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.run import RUN_DATA

if TYPE_CHECKING:
    from trainhub_azureml.run_configuration import ScriptRunConfig
    from trainhub_azureml.workspace import Workspace

_QUOTE = str.maketrans({sign: f"\\{sign}" for sign in '\\"`'})


class RunData(NamedTuple):
    """`texts`: for each object among the arguments, by its `id`, what the processes get; `references`: what
    replaces the text of a reference; `inputs`, `outputs`: of the spec; `variables`: for the run; `notes`:
    what is different from Azure."""

    texts: Mapping[int, str] = {}
    references: Mapping[str, str] = {}
    inputs: Mapping[str, Mapping[str, Any]] = {}
    outputs: Mapping[str, str] = {}
    variables: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()

    def arguments(self, values: Iterable[Any]) -> list[Any]:
        """Returns the arguments with texts instead of data."""
        return [self._replaced(self.texts.get(id(value), value)) for value in values]

    def command(self, command: Any) -> Any:
        """Returns a command with texts instead of data, in quotation marks for a shell."""
        if isinstance(command, str):
            return self._replaced(command)
        return [
            f'"{self.texts[id(part)].translate(_QUOTE)}"' if id(part) in self.texts else self._replaced(part)
            for part in command
        ]

    def _replaced(self, value: Any) -> Any:
        for name in sorted(self.references, key=len, reverse=True) if isinstance(value, str) else ():
            value = value.replace(name, self.references[name])
        return value


def collect_run_data(workspace: Workspace, config: ScriptRunConfig) -> RunData:
    """Returns the data of a run. Files that are on no node and in no store come to the hub, except in a dry
    run. Raises UserErrorException."""
    run_config = config.run_config
    collection = _Collection(workspace)
    for name, reference in (run_config.data_references or {}).items():
        collection.add_reference(name, reference)
    for values in (config.arguments, run_config.arguments, config.command, run_config.command):
        for value in () if values is None or isinstance(values, str) else values:
            collection.add(value)
    for value in (run_config.data or {}).values():
        collection.add(value)
    return collection.to_run_data()


class _Collection:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._texts: dict[int, str] = {}
        self._references: dict[str, str] = {}
        self._inputs: dict[str, dict[str, Any]] = {}
        self._described: dict[str, dict[str, Any]] = {}
        self._datasets: dict[str, AbstractDataset] = {}
        self._outputs: dict[str, str] = {}
        self._place: dict[str, str] | None = None
        self._notes: list[str] = []

    def add(self, value: Any) -> None:
        if isinstance(value, AbstractDataset):
            mode = MOUNT if isinstance(value, FileDataset) else DIRECT
            consumption = DatasetConsumptionConfig(value._input_name(), value, mode)
            self._texts[id(value)] = self._add_dataset(consumption)
        elif isinstance(value, DatasetConsumptionConfig):
            self._texts[id(value)] = self._add_dataset(value)
        elif isinstance(value, DataReference):
            self._texts[id(value)] = self.add_reference(value.data_reference_name, value)
        elif isinstance(value, OutputFileDatasetConfig):
            self._texts[id(value)] = self._add_output(value)

    def add_reference(self, name: str, reference: Any) -> str:
        """Returns the text for an argument."""
        name = input_name(name)
        if isinstance(reference, DataReferenceConfiguration):
            datastore = Datastore(self._workspace, reference.datastore_name)
        elif isinstance(reference, DataReference):
            datastore = reference.datastore
        else:
            raise UserErrorException(f"data_references: {name} is no reference to a datastore.")
        if reference.mode not in (MOUNT, DOWNLOAD):
            raise UserErrorException(
                f"{name}: mode {reference.mode} is not offered; give OutputFileDatasetConfig as the argument."
            )
        dataset = FileDataset([StorePath(datastore, clean_path(reference.path_on_datastore or ""))])
        text = self._add_input(name, dataset, reference.mode, place_dataset(self._workspace, dataset))
        self._references[f"{PREFIX}{name}"] = text
        return text

    def to_run_data(self) -> RunData:
        described = {"inputs": self._described, "outputs": self._outputs}
        data = {key: value for key, value in described.items() if value}
        variables = {RUN_DATA: json.dumps(data, sort_keys=True)} if data else {}
        return RunData(
            self._texts,
            self._references,
            self._inputs,
            self._place or {},
            variables,
            tuple(dict.fromkeys(self._notes)),
        )

    def _add_dataset(self, consumption: DatasetConsumptionConfig) -> str:
        """Returns the text for an argument."""
        dataset, name = consumption.dataset, consumption.name
        other = self._datasets.setdefault(name.upper(), dataset)
        if other is not dataset:
            raise UserErrorException(
                f"Two datasets have the name {name}: give each another, by as_named_input."
            )
        place = place_dataset(self._workspace, dataset)
        text = self._add_input(name, dataset, consumption.mode, place)
        facts: dict[str, Any] = {"id": place.id or name}
        if place.below:
            facts["below"] = place.below
        if dataset._table is not None:
            facts["table"] = dataset._table.to_json()
        elif consumption.mode == DIRECT:
            facts["is_object"] = True
        self._described[name] = facts
        is_path = consumption.mode != DIRECT and dataset._table is None
        return text if is_path else str(facts["id"])

    def _add_input(self, name: str, dataset: AbstractDataset, mode: str, place: InputPlace) -> str:
        self._notes += place.notes
        actual = MOUNT if place.kind in MOUNTED else DOWNLOAD
        if mode == DOWNLOAD != actual:
            self._notes.append(f"{name} is read where it lies, and not downloaded.")
        elif mode == MOUNT != actual and place.kind:
            self._notes.append(f"{name} is not mounted: each node downloads it before the run starts.")
        elif mode == DIRECT:
            self._notes.append(f"{name} is on each node before the run starts.")
        self._inputs[name] = {**place.spec, **({"mode": actual} if place.kind else {})}
        variable = f"$TRAINHUB_INPUT_{name.upper()}"
        # A dollar in the name of a file is none of a variable.
        return posixpath.join(variable, place.below.replace("$", "$$")) if place.below else variable

    def _add_output(self, output: OutputFileDatasetConfig) -> str:
        """Returns the text for an argument."""
        folder = f"outputs/{output.name}"
        self._outputs[output.name] = folder
        if output.destination is not None:
            (store,) = parse_sources(output.destination)
            if isinstance(store, StorePath) and store.datastore._row.kind != HUB:
                # What stands behind is made for each run by the hub, too.
                path = store.path.partition("{")[0].rstrip("/")
                place = {"datastore": store.datastore._row.name, **({"path": path} if path else {})}
                if self._place not in (None, place):
                    raise UserErrorException(
                        f"{output.name}: all outputs of a run go to one place; give the same destination."
                    )
                self._place = place
                self._notes.append(f"All of outputs/ goes to {store.datastore.name}, not only {output.name}.")
        return folder
