from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "_OfflineRun": "trainhub_azureml.job.offline_run",
        "Run": "trainhub_azureml.run",
    },
)
