"""The name under which scripts know the SDK v1."""

from trainhub_azureml.lazy_names import other_folders, refuse_other_modules

# The distribution azureml-mlflow has its files in a folder of the same name.
__path__ += other_folders(__path__)
refuse_other_modules()
