from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "BayesianParameterSampling": "trainhub_azureml.hyperdrive.samplers",
        "GridParameterSampling": "trainhub_azureml.hyperdrive.samplers",
        "HyperParameterSampling": "trainhub_azureml.hyperdrive.samplers",
        "RandomParameterSampling": "trainhub_azureml.hyperdrive.samplers",
    },
)
