"""The configuration `"distribution": {"type": "tensorflow", …}` of a spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trainhub_launch.distribution import Distribution, check_total, narrow
from trainhub_launch.fields import Fields
from trainhub_launch.frameworks.json_schema import COUNT, configuration_schema

# Every task's TF_CONFIG lists all tasks, so a plan grows with the square of them.
MAX_TASKS = 512


@dataclass(frozen=True)
class TensorflowConfiguration(Distribution):
    worker_count: int = 1
    parameter_server_count: int = 0
    type: str = "tensorflow"
    nodes_field: ClassVar[str] = "resources.node_count"

    def nodes(self, requested: int | None) -> int:
        return requested or self.worker_count

    def check(self, requested: int | None) -> None:  # noqa: ARG002 (the planner checks it)
        check_total("distribution.worker_count", self.worker_count + self.parameter_server_count, MAX_TASKS)


JSON_SCHEMA = configuration_schema(
    "tensorflow", {"worker_count": COUNT, "parameter_server_count": {"type": "integer", "minimum": 0}}
)


def read(fields: Fields) -> TensorflowConfiguration:
    return TensorflowConfiguration(
        worker_count=fields.integer("worker_count", 1, least=1, most=MAX_TASKS),
        parameter_server_count=fields.integer("parameter_server_count", 0, least=0, most=MAX_TASKS),
    )


def summary(distribution: Distribution) -> str:
    configuration = narrow(distribution, TensorflowConfiguration)
    servers = configuration.parameter_server_count
    return f"×{configuration.worker_count}{f' + {servers} ps' if servers else ''}"
