from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "Chainer": "trainhub_azureml.estimators.frameworks",
        "Keras": "trainhub_azureml.estimators.frameworks",
        "PyTorch": "trainhub_azureml.estimators.frameworks",
        "TensorFlow": "trainhub_azureml.estimators.frameworks",
        "Gloo": "trainhub_azureml.estimators.estimator",
        "Mpi": "trainhub_azureml.distributions:MpiConfiguration",
        "Nccl": "trainhub_azureml.estimators.estimator",
        "ParameterServer": "trainhub_azureml.distributions:TensorflowConfiguration",
    },
)
