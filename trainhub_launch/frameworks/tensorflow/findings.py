"""Findings about TensorFlow runs."""

from __future__ import annotations

from collections.abc import Iterator

from trainhub_launch.distribution import narrow
from trainhub_launch.findings.finding import Finding
from trainhub_launch.frameworks.layout import deal
from trainhub_launch.frameworks.tensorflow.configuration import TensorflowConfiguration
from trainhub_launch.spec import RunSpec


def findings(spec: RunSpec) -> Iterator[Finding]:
    configuration = narrow(spec.distribution, TensorflowConfiguration)
    gpus, workers = spec.resources.gpus_per_node, configuration.worker_count
    largest = max(deal(workers, spec.node_count))
    if gpus and largest > gpus:
        yield Finding(
            "warning",
            "distribution.worker_count",
            f"{largest} workers on a node with {gpus} requested GPU(s) would share "
            f"devices, and each takes all their memory; ask for {largest} GPUs per node, or spread the "
            "workers over more nodes",
        )
    if workers % spec.node_count and workers > spec.node_count:
        yield Finding(
            "hint",
            "distribution.worker_count",
            f"{workers} workers on {spec.node_count} nodes: some nodes get more than others",
        )
    # With parameter servers scripts use another strategy, under which nobody calls fit().
    if (
        workers > 1
        and not configuration.parameter_server_count
        and "TF_USE_LEGACY_KERAS" not in spec.environment_variables
    ):
        yield Finding(
            "hint",
            "environment_variables",
            "Keras 3's fit() does not work under MultiWorkerMirroredStrategy; if the script "
            "calls it, add TF_USE_LEGACY_KERAS=1 and have tf-keras in the environment (a custom "
            "training loop needs neither)",
        )
