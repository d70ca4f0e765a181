"""PyTorch (torch.distributed): TrainHub starts every process, or one per node for the user's launcher."""

from __future__ import annotations

from trainhub_launch.frameworks.framework import ConfigurationFormat, Framework, VariableRules
from trainhub_launch.frameworks.pytorch import configuration, findings, variables
from trainhub_launch.frameworks.pytorch.cards import PER_NODE, PER_PROCESS
from trainhub_launch.frameworks.pytorch.planner import demand, plan

FRAMEWORK = Framework(
    name="pytorch",
    label="PyTorch",
    sentence=(
        "torch.distributed: TrainHub starts every process and gives it its rank, or starts one per node for "
        "torchrun or Lightning."
    ),
    configuration=ConfigurationFormat(configuration.read, configuration.JSON_SCHEMA, configuration.summary),
    planner=plan,
    demand=demand,
    findings=findings.findings,
    node_findings=findings.node_findings,
    variables=VariableRules(
        overridable=variables.OVERRIDABLE,
        sets_master=True,
        remedy=variables.remedy,
        suggestion=variables.suggestion,
    ),
    cards=(PER_PROCESS, PER_NODE),
)
