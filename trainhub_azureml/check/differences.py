"""What works differently from the SDK v1, by call, and what scripts read that has another name here."""

from __future__ import annotations

from collections.abc import Mapping

from trainhub_azureml.not_offered import SERVICE

_SIGN_IN = "is accepted and not used: the hub takes the token of trainhub login, or that of TRAINHUB_TOKEN"
_MACHINES = "no machines are made or removed: the name means a cluster of the hub"
_ESTIMATOR = "was deprecated in the SDK v1 itself; its framework comes in the newest version of the hub"
_IMAGE = "packages are installed on the node; an image counts only with user_managed_dependencies=True"

_DOWNLOADED = "nodes download the data before the run starts, unless it lies in a folder or share of theirs"
_STORE = "the datastore of the hub that the mapping file or the same name means, else that for uploaded files"

CALLS: Mapping[str, str] = {
    "AmlCompute.provisioning_configuration": _MACHINES,
    "ComputeTarget.create": _MACHINES,
    "AmlCompute.create": _MACHINES,
    "AmlCompute.delete": _MACHINES,
    "ComputeTarget.delete": _MACHINES,
    "AmlCompute.update": _MACHINES,
    "AzureCliAuthentication": _SIGN_IN,
    "InteractiveLoginAuthentication": _SIGN_IN,
    "MsiAuthentication": _SIGN_IN,
    "ServicePrincipalAuthentication": _SIGN_IN,
    "TokenAuthentication": _SIGN_IN,
    "Workspace.create": "no workspace is made: runs go to the workspace of your token",
    "Workspace.get_mlflow_tracking_uri": "is the address of the hub; the token is in MLFLOW_TRACKING_TOKEN",
    "Workspace.get_default_datastore": _STORE,
    "Datastore.get": _STORE,
    "Datastore.get_default": _STORE,
    "Datastore.register_azure_blob_container": "the credentials become a secret, which owners may store",
    "FileDataset.as_mount": _DOWNLOADED,
    "FileDataset.mount": "only for inputs of a job; outside use download",
    "DatasetConsumptionConfig.as_mount": _DOWNLOADED,
    "DataReference.as_mount": _DOWNLOADED,
    "OutputFileDatasetConfig": "is a folder below outputs/; all of outputs/ goes to its destination",
    "Dataset.get_by_name": "in a job, only inputs of the run",
    "DockerSection.base_image": _IMAGE,
    "DockerSection.base_dockerfile": "a node builds the image, and the hub keeps it",
    "DockerSection.enabled": "has no meaning: the environment decides",
    "Environment.build": "the environment can be used as soon as this returns",
    "Environment.register": "waits until the hub has found versions of all packages that fit together",
    "SparkSection.precache_packages": "has no meaning",
    "Experiment.start_logging": "the source of the process is not kept",
    "BayesianParameterSampling": "draws at random: no model learns from the runs that have ended",
    "HyperDriveConfig": "the process that submits the search runs it, and stays until it is over",
    "RunDetails.show": "prints the state and the address; in a notebook a table for half a minute",
    "set_diagnostics_collection": "TrainHub collects nothing",
    "ParallelTaskConfiguration": "is refused: submit a run for each task",
    "Model.get_model_path": "keeps what it fetches in azureml-models/NAME/VERSION of the current folder",
    "Model.delete": "needs the role owner",
    "Estimator": "was deprecated in the SDK v1 itself; ScriptRunConfig does the same",
    "Keras": _ESTIMATOR,
    "PyTorch": _ESTIMATOR,
    "SKLearn": _ESTIMATOR,
    "TensorFlow": _ESTIMATOR,
}
# They can be imported and raise when they are used, because scripts name them beside others.
REFUSALS: Mapping[str, str] = {
    "Chainer": "there is no environment with Chainer: use Estimator with pip_packages, or PyTorch",
    "InferenceConfig": SERVICE,
    "Model.deploy": SERVICE,
    "Model.package": SERVICE,
    "Model.profile": SERVICE,
}
ESTIMATORS = ("Estimator", "Keras", "PyTorch", "SKLearn", "TensorFlow")
VARIABLES: Mapping[str, str] = {
    "AZ_BATCHAI_PYTORCH_INIT_METHOD": "is not set: use init_method='env://', which it becomes in arguments",
}
NUMPY_ALIASES = frozenset({"bool", "complex", "float", "int", "long", "object", "str", "unicode"})
