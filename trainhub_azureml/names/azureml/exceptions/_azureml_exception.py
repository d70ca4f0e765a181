from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "ActivityFailedException": "trainhub_azureml.exceptions",
        "AuthenticationException": "trainhub_azureml.exceptions",
        "AzureMLException": "trainhub_azureml.exceptions",
        "ComputeTargetException": "trainhub_azureml.exceptions",
        "ExperimentExecutionException": "trainhub_azureml.exceptions",
        "ModelNotFoundException": "trainhub_azureml.exceptions",
        "ProjectSystemException": "trainhub_azureml.exceptions",
        "RunEnvironmentException": "trainhub_azureml.exceptions",
        "ServiceException": "trainhub_azureml.exceptions",
        "UserErrorException": "trainhub_azureml.exceptions",
    },
)
