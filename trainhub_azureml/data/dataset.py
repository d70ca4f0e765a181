"""The entrance to datasets: made of paths and addresses, and looked up by name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainhub_azureml.data.data_reference import DataPath, DataReference
from trainhub_azureml.data.datasets import AbstractDataset, FileDataset, TabularDataset
from trainhub_azureml.data.datastore import Datastore
from trainhub_azureml.data.refused_members import RefusedMembers
from trainhub_azureml.data.sources import parse_sources
from trainhub_azureml.data.tables import DELIMITED, JSON_LINES, PARQUET, TableFormat
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.job.input_datasets import dataset_of_job, is_job

if TYPE_CHECKING:
    from trainhub_azureml.workspace import Workspace

_LATEST = "latest"


class FileDatasetFactory(RefusedMembers):
    @staticmethod
    def from_files(
        path: Any, validate: bool = True, partition_format: str | None = None, is_file: bool = False
    ) -> FileDataset:
        """Returns a dataset of the files at `path`: (datastore, path), an address, or a list of these. Raises
        UserErrorException."""
        _refuse("from_files", partition_format=partition_format)
        return FileDataset(parse_sources(path))

    @staticmethod
    def upload_directory(
        src_dir: Any,
        target: Any,
        pattern: str | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> FileDataset:
        """Uploads a folder to `target`, (datastore, path), with the files whose path the regular expression
        `pattern` matches. Returns the dataset of them. Raises UserErrorException."""
        if isinstance(target, Datastore):
            target = (target, "")
        if isinstance(target, (DataPath, DataReference)):
            target = (target.datastore, target.path_on_datastore)
        datastore, path = target
        folder = os.fspath(src_dir)
        if pattern is None:
            datastore.upload(folder, path, overwrite, show_progress)
        else:
            datastore.upload_files(_matching(folder, pattern), folder, path, overwrite, show_progress)
        return FileDataset(parse_sources((datastore, path)))


class TabularDatasetFactory(RefusedMembers):
    """What `take`, `to_pandas_dataframe` and a run read; other transformations are for pandas."""

    @staticmethod
    def from_delimited_files(
        path: Any,
        validate: bool = True,
        include_path: bool = False,
        infer_column_types: bool = True,
        set_column_types: Any = None,
        separator: str = ",",
        header: Any = True,
        partition_format: str | None = None,
        support_multi_line: bool = False,
        empty_as_string: bool = False,
        encoding: str = "utf8",
    ) -> TabularDataset:
        """Returns a dataset of tables in files such as CSV. Raises UserErrorException."""
        _refuse(
            "from_delimited_files",
            include_path=include_path,
            set_column_types=set_column_types,
            partition_format=partition_format,
        )
        has_header = header is not None and bool(header)
        table = TableFormat(DELIMITED, separator, has_header, encoding, infer_column_types)
        return TabularDataset(parse_sources(path), table)

    @staticmethod
    def from_parquet_files(
        path: Any,
        validate: bool = True,
        include_path: bool = False,
        set_column_types: Any = None,
        partition_format: str | None = None,
    ) -> TabularDataset:
        _refuse(
            "from_parquet_files",
            include_path=include_path,
            set_column_types=set_column_types,
            partition_format=partition_format,
        )
        return TabularDataset(parse_sources(path), TableFormat(PARQUET))

    @staticmethod
    def from_json_lines_files(
        path: Any,
        validate: bool = True,
        include_path: bool = False,
        set_column_types: Any = None,
        partition_format: str | None = None,
        invalid_lines: str = "error",
        encoding: str = "utf8",
    ) -> TabularDataset:
        _refuse(
            "from_json_lines_files",
            include_path=include_path,
            set_column_types=set_column_types,
            partition_format=partition_format,
        )
        return TabularDataset(parse_sources(path), TableFormat(JSON_LINES))


class Dataset(RefusedMembers):
    File = FileDatasetFactory
    Tabular = TabularDatasetFactory

    @staticmethod
    def get_by_name(workspace: Workspace, name: str, version: Any = _LATEST) -> AbstractDataset:
        """Returns a registered dataset, by default its newest version; in a job an input of the run. Raises
        UserErrorException if there is none."""
        number = None if version in (None, _LATEST) else int(version)
        if is_job():
            return dataset_of_job(name, number)
        from trainhub_azureml.data.registration import named_dataset

        return named_dataset(workspace, name, number)

    @staticmethod
    def get_by_id(workspace: Workspace, id: str, **_others: Any) -> AbstractDataset:
        """Returns a dataset by the id that it has as an argument of a run, `NAME:VERSION`."""
        name, _, number = str(id).rpartition(":")
        if name and number.isdigit():
            return Dataset.get_by_name(workspace, name, int(number))
        if is_job():
            return dataset_of_job(str(id))
        raise UserErrorException(f"get_by_id: {id!r} is no id of a dataset on the hub, such as birds:3.")

    @staticmethod
    def get_all(workspace: Workspace) -> Mapping[str, AbstractDataset]:
        """Returns the newest version of each dataset that has one, by name."""
        from trainhub_azureml.data.registration import registered_datasets

        return registered_datasets(workspace)


def _matching(folder: str, pattern: str) -> list[str]:
    paths = [
        os.path.join(parent, name) for parent, _folders, names in os.walk(folder) for name in sorted(names)
    ]
    return [path for path in paths if re.search(pattern, os.path.relpath(path, folder))]


def _refuse(call: str, **arguments: Any) -> None:
    name = next((name for name, value in arguments.items() if value), None)
    if name is not None:
        raise UserErrorException(f"{call}: {name} is not offered; do this with pandas in the script.")
