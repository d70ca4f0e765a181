"""The variables by which a script finds the data that its run reads."""

from __future__ import annotations

from trainhub_launch.plan import EnvValue, Reference
from trainhub_launch.spec import REFERENCE, RunSpec

PREFIX = "TRAINHUB_INPUT_"
AZURE_PREFIX = "AZUREML_DATAREFERENCE_"
# Behind the name of an input by reference, for the file with its addresses.
FILES_SUFFIX = "_FILES"


def reference_name(name: str) -> str:
    """Returns the name of the Reference (of the kind `launch`) that stands for the path of an input."""
    return f"input_{name}"


def addresses_name(name: str) -> str:
    """Returns that of the Reference for the path of the file with the addresses of an input."""
    return f"files_of_{name}"


def variables(spec: RunSpec) -> dict[str, EnvValue]:
    """Returns the variables of all inputs: each path or URI under our name and under that of Azure ML, and
    for those by reference the path of the file with their addresses."""
    env: dict[str, EnvValue] = {}
    for name, data_input in spec.inputs.items():
        path = Reference("launch", reference_name(name))
        env |= {f"{PREFIX}{name.upper()}": path, f"{AZURE_PREFIX}{name}": path}
        if data_input.mode == REFERENCE:
            env[f"{PREFIX}{name.upper()}{FILES_SUFFIX}"] = Reference("launch", addresses_name(name))
    return env
