"""The choice "TensorFlow" of the wizard."""

from __future__ import annotations

from trainhub_launch.distribution import MAX_NODES
from trainhub_launch.frameworks.form import FormCard, NumberField
from trainhub_launch.frameworks.tensorflow.configuration import MAX_TASKS, TensorflowConfiguration

CARD = FormCard(
    "tensorflow",
    "TensorFlow",
    "Every worker gets its own TF_CONFIG with the addresses of all, before the script starts: "
    "for MultiWorkerMirroredStrategy.",
    variables="TF_CONFIG",
    fields=(
        NumberField("tf_worker_count", "Workers", "distribution.worker_count", "2", MAX_TASKS),
        NumberField(
            "tf_server_count",
            "Parameter servers",
            "distribution.parameter_server_count",
            "0",
            MAX_TASKS,
            minimum=0,
            help_text=(
                "0 for MultiWorkerMirroredStrategy. With parameter servers a chief is added, which "
                "decides the outcome."
            ),
        ),
        NumberField(
            "tf_node_count",
            "Nodes",
            "resources.node_count",
            "",
            MAX_NODES,
            required=False,
            help_text="By default one node per worker. With fewer nodes, consecutive workers share a node.",
        ),
    ),
    configuration=TensorflowConfiguration,
)
