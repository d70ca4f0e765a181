"""What objects of the SDK v1 have and ours have not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from trainhub_azureml.exceptions import UserErrorException

_TABLES = "is not offered: read the table by to_pandas_dataframe, and use pandas"
_STORE = "is not offered: add a datastore on the page Data, and use Datastore.get"
_SQL = "is not offered: query the database, and keep the rows in a file"
_FRAMES = "is not offered: read the data in the script, for example with pandas or Polars"
_REGISTER_OUTPUT = "is not offered: when the run has ended, make a dataset of its outputs on its page"
_NO_TABLE_OUTPUT = "is not offered: the script writes the files, and a later run reads them as a dataset"
MEMBERS: Mapping[str, str] = {
    **{
        f"TabularDataset.{name}": _TABLES
        for name in (
            "drop_columns",
            "filter",
            "get_partition_key_values",
            "get_profile",
            "keep_columns",
            "partition_by",
            "random_split",
            "sample",
            "skip",
            "submit_profile_run",
            "time_after",
            "time_before",
            "time_between",
            "time_recent",
            "to_csv_files",
            "to_dask_dataframe",
            "to_parquet_files",
            "to_spark_dataframe",
            "with_timestamp_columns",
        )
    },
    **{
        f"FileDataset.{name}": "is not offered: make a dataset of the files that are meant"
        for name in ("file_metadata", "filter", "random_split", "sample", "skip", "take", "hydrate")
    },
    "Dataset.auto_read_files": "is not offered: use Dataset.Tabular with the format of the files",
    "AbstractDataset.unregister_all_versions": "is not offered: delete the dataset on its page",
    "AbstractDataset.add_tags": "is not offered: change the tags on the page of the dataset",
    "AbstractDataset.remove_tags": "is not offered: change the tags on the page of the dataset",
    "TabularDatasetFactory.from_sql_query": _SQL,
    "TabularDatasetFactory.register_pandas_dataframe": (
        "is not offered: write a file by pandas, upload it, and use Dataset.Tabular.from_parquet_files"
    ),
    "TabularDatasetFactory.register_spark_dataframe": _FRAMES,
    "TabularDatasetFactory.register_dask_dataframe": _FRAMES,
    "Datastore.register_azure_file_share": _STORE,
    "Datastore.register_azure_data_lake": _STORE,
    "Datastore.register_azure_data_lake_gen2": _STORE,
    "Datastore.register_azure_sql_database": _SQL,
    "Datastore.register_azure_postgre_sql": _SQL,
    "Datastore.register_azure_my_sql": _SQL,
    "Datastore.register_dbfs": _STORE,
    "Datastore.register_hdfs": _STORE,
    "Datastore.unregister": "is not offered: delete the datastore on the page Data",
    "Datastore.set_as_default": "is not offered: map workspaceblobstore in trainhub-azureml.toml",
    "DataReference.as_upload": "is not offered: give OutputFileDatasetConfig as the argument",
    "Datastore.as_upload": "is not offered: give OutputFileDatasetConfig as the argument",
    "DatasetConsumptionConfig.as_hdfs": _FRAMES,
    "OutputFileDatasetConfig.register_on_complete": _REGISTER_OUTPUT,
    "OutputFileDatasetConfig.as_input": _NO_TABLE_OUTPUT,
    "OutputFileDatasetConfig.read_delimited_files": _NO_TABLE_OUTPUT,
    "OutputFileDatasetConfig.read_parquet_files": _NO_TABLE_OUTPUT,
    "Workspace.set_default_datastore": "is not offered: map workspaceblobstore in trainhub-azureml.toml",
}


class _RefusingClass(type):
    def __getattr__(cls, name: str) -> NoReturn:
        _refuse(cls, name)


class RefusedMembers(metaclass=_RefusingClass):
    """The attributes in MEMBERS raise UserErrorException with what to use instead, on the class
    and on its objects."""

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(type(self), name)


def _refuse(kind: type, name: str) -> NoReturn:
    for cls in kind.__mro__:
        sentence = MEMBERS.get(f"{cls.__name__}.{name}")
        if sentence is not None:
            raise UserErrorException(f"{cls.__name__}.{name}: {sentence}.")
    raise AttributeError(f"{kind.__name__} has no attribute {name!r}")
