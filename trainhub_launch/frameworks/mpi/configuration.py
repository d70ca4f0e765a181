"""The configuration `"distribution": {"type": "mpi", …}` of a spec."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.distribution import (
    MAX_NODES,
    MAX_PROCESSES,
    Distribution,
    NodeCountDistribution,
    check_total,
    narrow,
)
from trainhub_launch.fields import Fields
from trainhub_launch.frameworks.json_schema import COUNT, configuration_schema


@dataclass(frozen=True)
class MpiConfiguration(NodeCountDistribution):
    process_count_per_node: int = 1
    node_count: int = 1
    type: str = "mpi"

    def check(self, requested: int | None) -> None:
        check_total("distribution.process_count_per_node", self.process_count_per_node * self.node_count)
        super().check(requested)


JSON_SCHEMA = configuration_schema("mpi", {"process_count_per_node": COUNT, "node_count": COUNT})


def read(fields: Fields) -> MpiConfiguration:
    return MpiConfiguration(
        process_count_per_node=fields.integer("process_count_per_node", 1, least=1, most=MAX_PROCESSES),
        node_count=fields.integer("node_count", 1, least=1, most=MAX_NODES),
    )


def summary(distribution: Distribution) -> str:
    configuration = narrow(distribution, MpiConfiguration)
    return f"×{configuration.process_count_per_node * configuration.node_count}"
