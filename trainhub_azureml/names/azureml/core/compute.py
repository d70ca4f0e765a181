from trainhub_azureml.lazy_names import lazy_attributes

__getattr__, __all__ = lazy_attributes(
    __name__,
    {
        "AmlCompute": "trainhub_azureml.compute",
        "ComputeTarget": "trainhub_azureml.compute",
        "ComputeTargetException": "trainhub_azureml.exceptions",
    },
)
