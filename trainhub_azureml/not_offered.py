"""What of the SDK v1 is not offered, and what to use instead. The most specific entry counts."""

from __future__ import annotations

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_DATA = "this part of datasets and datastores is not offered: use Dataset.File, Dataset.Tabular and Datastore"
_OPEN_DATA = "open datasets are not offered: name their addresses in Dataset.File.from_files"
SERVICE = "web services are not offered: download the model, or export it to ONNX, and serve it elsewhere"
_PIPELINE = "pipelines are not offered: submit the steps one after another, and wait for each"
_AUTOML = "automated machine learning is not offered: submit a script that searches by itself"
_SPARK = "Spark is not offered: read the data in the script, for example with pandas or Polars"
_VAULT = "key vaults are not offered: store a secret on the hub, and give its name to a variable of the run"
_COMPUTE = "this kind of compute is not offered: name a cluster of the hub"

MODULES: Mapping[str, str] = {
    "azureml.core.image": SERVICE,
    "azureml.core.webservice": SERVICE,
    "azureml.core.keyvault": _VAULT,
    "azureml.core.databricks": _SPARK,
    "azureml.core.resource_configuration": SERVICE,
    "azureml.core.linked_service": _SPARK,
    "azureml.data": _DATA,
    "azureml.dataprep": _DATA,
    "azureml.opendatasets": _OPEN_DATA,
    "azureml.datadrift": _DATA,
    "azureml.train.automl": _AUTOML,
    "azureml.automl": _AUTOML,
    "azureml.pipeline": _PIPELINE,
    "azureml.tensorboard": "TensorBoard is a tab of each run's page",
    "azureml.interpret": "explanations are not offered: use the library interpret in the script",
    "azureml.explain": "explanations are not offered: use the library interpret in the script",
    "azureml.fairness": "fairness dashboards are not offered: use the library fairlearn in the script",
    "azureml.contrib": "azureml.contrib is not offered",
    "azureml.monitoring": SERVICE,
    "azureml.accel": SERVICE,
    "azureml.studio": _PIPELINE,
}
NAMES: Mapping[str, str] = {
    "azureml.core.Keyvault": _VAULT,
    "azureml.core.Image": SERVICE,
    "azureml.core.Webservice": SERVICE,
    "azureml.core.LinkedService": _SPARK,
    "azureml.core.runconfig.Data": _DATA,
    "azureml.core.runconfig.DataLocation": _DATA,
    "azureml.core.runconfig.OutputData": _DATA,
    "azureml.data.LinkTabularOutputDatasetConfig": _DATA,
    "azureml.data.DataType": "column types are not offered: set them with pandas after to_pandas_dataframe",
    "azureml.data.datapath.DataPathComputeBinding": _DATA,
    "azureml.core.compute.AksCompute": SERVICE,
}
_KINDS = {"azureml.core.compute": _COMPUTE, "azureml.core.model": SERVICE}


def module_sentence(module: str) -> str:
    """Returns why a module cannot be imported, and what to use instead."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 1, -1))
    reason = next((MODULES[name] for name in names if name in MODULES), f"{module} is not offered")
    return f"{module}: {reason}."


def name_sentence(module: str, name: str) -> str:
    """Returns why a name cannot be imported from an offered module, and what to use instead."""
    full = f"{module}.{name}"
    reason = NAMES.get(full) or _KINDS.get(module) or f"{name} is not offered by TrainHub"
    return f"{full}: {reason}."
