"""How the modules of `names/` get what they offer: each name is imported when it is asked for, so that a job
loads only what logging needs."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from trainhub_azureml.not_offered import module_sentence, name_sentence

# Not typing.TYPE_CHECKING: every process of a job imports this, and `typing` takes longer than all of it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

# The folder of the distribution azureml-mlflow, which is free software and works beside this package.
_FOREIGN = ("azureml.mlflow",)
OFFERED = frozenset(
    {
        "azureml.core",
        "azureml.core.authentication",
        "azureml.core.compute",
        "azureml.core.compute_target",
        "azureml.core.conda_dependencies",
        "azureml.core.container_registry",
        "azureml.core.dataset",
        "azureml.core.datastore",
        "azureml.core.environment",
        "azureml.core.experiment",
        "azureml.core.model",
        "azureml.core.run",
        "azureml.core.runconfig",
        "azureml.core.script_run_config",
        "azureml.core.workspace",
        "azureml.data",
        "azureml.data.abstract_dataset",
        "azureml.data.abstract_datastore",
        "azureml.data.azure_storage_datastore",
        "azureml.data.data_reference",
        "azureml.data.datapath",
        "azureml.data.dataset_consumption_config",
        "azureml.data.dataset_factory",
        "azureml.data.file_dataset",
        "azureml.data.output_dataset_config",
        "azureml.data.tabular_dataset",
        "azureml.dataprep",
        "azureml.dataprep.fuse",
        "azureml.dataprep.fuse.daemon",
        "azureml.exceptions",
        "azureml.exceptions._azureml_exception",
        "azureml.telemetry",
        "azureml.train",
        "azureml.train.dnn",
        "azureml.train.estimator",
        "azureml.train.sklearn",
        "azureml.train.hyperdrive",
        "azureml.train.hyperdrive.parameter_expressions",
        "azureml.train.hyperdrive.policy",
        "azureml.train.hyperdrive.run",
        "azureml.train.hyperdrive.runconfig",
        "azureml.train.hyperdrive.sampling",
        "azureml.widgets",
        "azureml._restclient",
        "azureml._restclient.constants",
        "azureml._base_sdk_common",
        "azureml._base_sdk_common.user_agent",
    }
)


def lazy_attributes(
    module: str, places: Mapping[str, str], submodules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], list[str]]:
    """Returns the functions `__getattr__` and the list `__all__` of a module. `places`: for each name the
    module that has it, or `MODULE:NAME`."""

    def get(name: str) -> Any:
        if name in places:
            place, _, own_name = places[name].partition(":")
            value = getattr(import_module(place), own_name or name)
            setattr(sys.modules[module], name, value)
            return value
        if name in submodules:
            return import_module(f"{module}.{name}")
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        # `from MODULE import NAME` would replace an AttributeError by a sentence that helps nobody.
        raise ImportError(name_sentence(module, name))

    return get, list(places)


def other_folders(present: Sequence[str]) -> list[str]:
    """Returns the folders `azureml` on the path besides those that are present, as pkgutil.extend_path does
    in ten times the time."""
    folders = (os.path.join(entry, "azureml") for entry in sys.path if isinstance(entry, str))
    return [folder for folder in folders if folder not in present and os.path.isdir(folder)]


class OtherModules:
    """A finder that refuses all modules of `azureml` that are not offered, so that nothing of another package
    of this name is mixed with this one."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if not name.startswith("azureml.") or name in OFFERED or name.startswith(_FOREIGN):
            return
        # Without its attribute `name`: `from PACKAGE import NAME` would replace the sentence.
        raise ModuleNotFoundError(module_sentence(name))


def refuse_other_modules() -> None:
    if OtherModules not in sys.meta_path:
        sys.meta_path.insert(0, OtherModules)
