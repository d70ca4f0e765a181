"""Variables under the names of Azure Machine Learning, for scripts that were written for its SDK v1.

A run asks for them by the variable WORKSPACE, which `trainhub_azureml` sets in each spec and whose value such
scripts read as well. A field of the spec beside it would say the same a second time, and a run that is
cloned or submitted from a spec file keeps the variable anyway."""

from __future__ import annotations

from trainhub_launch.plan import EnvValue, PlannedProcess, Reference
from trainhub_launch.processes.environment import address
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec

WORKSPACE = "AZUREML_ARM_WORKSPACE_NAME"


def variables(spec: RunSpec, placement: Placement, process: PlannedProcess) -> dict[str, EnvValue]:
    """Returns the variables of one process, none if the run does not ask for them.

    AZUREML_EXPERIMENT_ID is not among them: DeepSpeed takes it for a sign that Open MPI started the
    process."""
    if WORKSPACE not in spec.environment_variables:
        return {}
    head = address(placement.head, placement)
    env: dict[str, EnvValue] = {
        "AZUREML_RUN_ID": Reference("launch", "run_id"),
        "AZ_BATCHAI_TASK_INDEX": str(process.rank),
        "AZ_BATCHAI_MPI_MASTER_NODE": head,
    }
    if "MASTER_PORT" in process.env:
        env["AZ_BATCH_MASTER_NODE"] = f"{head}:{process.env['MASTER_PORT']}"
    return env
