"""MPI: one mpirun on the head node starts the ranks on every node."""

from __future__ import annotations

from trainhub_launch.frameworks.framework import ConfigurationFormat, Framework, VariableRules
from trainhub_launch.frameworks.mpi import configuration, findings, variables
from trainhub_launch.frameworks.mpi.card import CARD
from trainhub_launch.frameworks.mpi.planner import demand, plan

FRAMEWORK = Framework(
    name="mpi",
    label="MPI",
    sentence=(
        "Horovod, DeepSpeed or mpi4py: TrainHub builds the mpirun line and starts the ranks on every node."
    ),
    configuration=ConfigurationFormat(configuration.read, configuration.JSON_SCHEMA, configuration.summary),
    planner=plan,
    demand=demand,
    findings=findings.findings,
    node_findings=findings.node_findings,
    findings_elsewhere=findings.findings_elsewhere,
    variables=VariableRules(
        overridable=variables.OVERRIDABLE,
        sets_master=True,
        node_rank="$OMPI_COMM_WORLD_RANK",
        remedy=variables.remedy,
        suggestion=variables.suggestion,
    ),
    cards=(CARD,),
)
