"""The variables by which a script finds the data that its run reads."""

from __future__ import annotations

from trainhub_launch.plan import EnvValue, Reference
from trainhub_launch.spec import RunSpec

PREFIX = "TRAINHUB_INPUT_"
AZURE_PREFIX = "AZUREML_DATAREFERENCE_"


def reference_name(name: str) -> str:
    """Returns the name of the Reference (of the kind `launch`) that stands for the path of an input."""
    return f"input_{name}"


def variables(spec: RunSpec) -> dict[str, EnvValue]:
    """Returns the variables of all inputs: each path under our name, and under that of Azure ML."""
    env: dict[str, EnvValue] = {}
    for name in spec.inputs:
        path = Reference("launch", reference_name(name))
        env |= {f"{PREFIX}{name.upper()}": path, f"{AZURE_PREFIX}{name}": path}
    return env
