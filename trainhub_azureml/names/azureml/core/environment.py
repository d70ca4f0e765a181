from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "CondaDependencies": "trainhub_azureml.conda_dependencies",
        "ContainerRegistry": "trainhub_azureml.environment",
        "DockerSection": "trainhub_azureml.environment",
        "Environment": "trainhub_azureml.environment",
        "PythonSection": "trainhub_azureml.environment",
        "SparkSection": "trainhub_azureml.environment",
        "DEFAULT_CPU_IMAGE": "trainhub_azureml.environment:CPU_IMAGE",
        "DEFAULT_GPU_IMAGE": "trainhub_azureml.environment:GPU_IMAGE",
    },
)
