from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "FileDataset": "trainhub_azureml.data.datasets",
        "OutputFileDatasetConfig": "trainhub_azureml.data.consumption",
        "TabularDataset": "trainhub_azureml.data.datasets",
    },
    [
        "abstract_dataset",
        "abstract_datastore",
        "azure_storage_datastore",
        "data_reference",
        "datapath",
        "dataset_consumption_config",
        "dataset_factory",
        "file_dataset",
        "output_dataset_config",
        "tabular_dataset",
    ],
)
