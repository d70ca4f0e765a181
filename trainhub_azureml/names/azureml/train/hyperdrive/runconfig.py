from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "HyperDriveConfig": "trainhub_azureml.hyperdrive.search_config",
        "PrimaryMetricGoal": "trainhub_azureml.hyperdrive.search_config",
    },
)
