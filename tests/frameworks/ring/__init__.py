"""A made-up framework: processes in a ring, each of which knows the next one. It shows all that a framework
consists of."""

from __future__ import annotations

from tests.frameworks.ring import configuration, findings
from tests.frameworks.ring.card import CARD
from tests.frameworks.ring.planner import demand, plan
from trainhub_launch.frameworks.framework import ConfigurationFormat, Framework, VariableRules

FRAMEWORK = Framework(
    name="ring",
    label="Ring",
    sentence="Processes in a ring: each knows which one comes next.",
    configuration=ConfigurationFormat(configuration.read, configuration.JSON_SCHEMA, configuration.summary),
    planner=plan,
    demand=demand,
    findings=findings.findings,
    variables=VariableRules(sets_master=True, suggestion=findings.suggestion),
    cards=(CARD,),
)
