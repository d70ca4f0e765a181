"""No distribution: one process on one node."""

from __future__ import annotations

from trainhub_launch.frameworks.form import FormCard
from trainhub_launch.frameworks.framework import Framework, VariableRules
from trainhub_launch.frameworks.single.findings import findings
from trainhub_launch.frameworks.single.planner import demand, plan
from trainhub_launch.processes import elastic

FRAMEWORK = Framework(
    name="single",
    label="Single",
    sentence="One process on one node; it sees every requested GPU, and may start more processes itself.",
    planner=plan,
    demand=demand,
    findings=findings,
    variables=VariableRules(overridable=elastic.OVERRIDABLE),
    cards=(
        FormCard(
            "single",
            "One process",
            "Your script or command runs once, on one node. Your own launcher can still use "
            "several GPUs of that node.",
        ),
    ),
)
