"""TensorFlow: workers, parameter servers and a chief that find each other through TF_CONFIG."""

from __future__ import annotations

from trainhub_launch.frameworks.framework import ConfigurationFormat, Framework, VariableRules
from trainhub_launch.frameworks.tensorflow import configuration
from trainhub_launch.frameworks.tensorflow.card import CARD
from trainhub_launch.frameworks.tensorflow.findings import findings
from trainhub_launch.frameworks.tensorflow.planner import INTER_OP_THREADS, demand, plan

FRAMEWORK = Framework(
    name="tensorflow",
    label="TensorFlow",
    sentence="tf.distribute: every worker, parameter server and chief gets its own TF_CONFIG.",
    configuration=ConfigurationFormat(configuration.read, configuration.JSON_SCHEMA, configuration.summary),
    planner=plan,
    demand=demand,
    findings=findings,
    variables=VariableRules(overridable=frozenset({INTER_OP_THREADS})),
    cards=(CARD,),
)
