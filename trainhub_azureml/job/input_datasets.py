"""The data of a job, as its submission has described it: inputs by name, and folders for outputs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from trainhub_azureml.run import RUN_DATA, RUN_ID

# Not typing.TYPE_CHECKING: jobs import this early.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from trainhub_azureml.data.datasets import AbstractDataset


class InputDatasets(Mapping):  # type: ignore[type-arg]
    """For each input of the run its path; an object with the calls of datasets for tables, and for files that
    were given neither as a mount nor as a download."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            facts = _described("inputs")[name]
            is_path = not (facts.get("table") or facts.get("is_object"))
            self._values[name] = _path(name, facts) if is_path else _dataset(name, facts)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_described("inputs"))

    def __len__(self) -> int:
        return len(_described("inputs"))

    def __repr__(self) -> str:
        return repr({name: self[name] for name in self})


def is_job() -> bool:
    return bool(os.environ.get(RUN_ID))


def output_folders() -> dict[str, str]:
    """Returns the folder of each output by its name, and makes those that are not there."""
    folders = _described("outputs")
    for folder in folders.values():
        os.makedirs(folder, exist_ok=True)
    return dict(folders)


def dataset_of_job(name: str, number: int | None = None) -> AbstractDataset:
    """Returns the input that is this dataset: by its name, with or without a version, or by the name of the
    input. Raises UserErrorException if the run has no such input."""
    dataset_id = name if number is None else f"{name}:{number}"
    inputs = _described("inputs")
    for input_name, facts in inputs.items():
        names = (input_name, facts["id"], facts["id"].rpartition(":")[0])
        if dataset_id in (names if number is None else names[1:2]):
            return _dataset(input_name, facts)
    from trainhub_azureml.exceptions import UserErrorException

    listed = ", ".join(facts["id"] for facts in inputs.values()) or "none"
    raise UserErrorException(
        f"A job reads only the inputs of its run, which are: {listed}. Give the dataset {dataset_id} to the "
        "run, as an argument of ScriptRunConfig."
    )


def _dataset(name: str, facts: Mapping[str, Any]) -> AbstractDataset:
    from trainhub_azureml.data.datasets import FileDataset, TabularDataset
    from trainhub_azureml.data.sources import LocalPath
    from trainhub_azureml.data.tables import TableFormat

    sources = [LocalPath(_path(name, facts))]
    table = facts.get("table")
    dataset = FileDataset(sources) if table is None else TabularDataset(sources, TableFormat(**table))
    registered, _, number = facts["id"].rpartition(":")
    if registered:
        dataset.name, dataset.version = registered, int(number)
    return dataset


def _path(name: str, facts: Mapping[str, Any]) -> str:
    return os.path.join(os.environ[f"TRAINHUB_INPUT_{name.upper()}"], facts.get("below", "")).rstrip("/")


def _described(kind: str) -> Mapping[str, Any]:
    # {"inputs": {name: {"id", "below"?, "table"?, "is_object"?}}, "outputs": {name: folder}}
    data: Mapping[str, Any] = json.loads(os.environ.get(RUN_DATA) or "{}")
    described: Mapping[str, Any] = data.get(kind, {})
    return described
