from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "ProjectSystemException": "trainhub_azureml.exceptions",
        "UserErrorException": "trainhub_azureml.exceptions",
        "Workspace": "trainhub_azureml.workspace",
        "WorkspaceException": "trainhub_azureml.exceptions",
    },
)
