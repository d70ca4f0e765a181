from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "AuthenticationException": "trainhub_azureml.exceptions",
        "AbstractAuthentication": "trainhub_azureml.authentication",
        "AzureCliAuthentication": "trainhub_azureml.authentication",
        "InteractiveLoginAuthentication": "trainhub_azureml.authentication",
        "MsiAuthentication": "trainhub_azureml.authentication",
        "ServicePrincipalAuthentication": "trainhub_azureml.authentication",
        "TokenAuthentication": "trainhub_azureml.authentication",
    },
)
