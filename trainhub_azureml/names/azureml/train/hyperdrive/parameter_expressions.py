from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "choice": "trainhub_azureml.hyperdrive.parameter_expressions",
        "lognormal": "trainhub_azureml.hyperdrive.parameter_expressions",
        "loguniform": "trainhub_azureml.hyperdrive.parameter_expressions",
        "normal": "trainhub_azureml.hyperdrive.parameter_expressions",
        "qlognormal": "trainhub_azureml.hyperdrive.parameter_expressions",
        "qloguniform": "trainhub_azureml.hyperdrive.parameter_expressions",
        "qnormal": "trainhub_azureml.hyperdrive.parameter_expressions",
        "quniform": "trainhub_azureml.hyperdrive.parameter_expressions",
        "randint": "trainhub_azureml.hyperdrive.parameter_expressions",
        "uniform": "trainhub_azureml.hyperdrive.parameter_expressions",
    },
)
