from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "BanditPolicy": "trainhub_azureml.hyperdrive.policies",
        "EarlyTerminationPolicy": "trainhub_azureml.hyperdrive.policies",
        "MedianStoppingPolicy": "trainhub_azureml.hyperdrive.policies",
        "NoTerminationPolicy": "trainhub_azureml.hyperdrive.policies",
        "TruncationSelectionPolicy": "trainhub_azureml.hyperdrive.policies",
    },
)
