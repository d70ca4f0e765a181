from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "AbstractDatastore": "trainhub_azureml.data.datastore:Datastore",
    },
)
