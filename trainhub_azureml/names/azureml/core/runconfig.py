from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "CondaDependencies": "trainhub_azureml.conda_dependencies",
        "MpiConfiguration": "trainhub_azureml.distributions",
        "ParallelTaskConfiguration": "trainhub_azureml.distributions",
        "PyTorchConfiguration": "trainhub_azureml.distributions",
        "TensorflowConfiguration": "trainhub_azureml.distributions",
        "Environment": "trainhub_azureml.environment",
        "DataReferenceConfiguration": "trainhub_azureml.data.data_reference",
        "EnvironmentDefinition": "trainhub_azureml.environment:Environment",
        "DockerConfiguration": "trainhub_azureml.run_configuration",
        "RunConfiguration": "trainhub_azureml.run_configuration",
        "ScriptRunConfig": "trainhub_azureml.run_configuration",
        "DEFAULT_CPU_IMAGE": "trainhub_azureml.environment:CPU_IMAGE",
        "DEFAULT_GPU_IMAGE": "trainhub_azureml.environment:GPU_IMAGE",
    },
)
