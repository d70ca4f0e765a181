"""`"distribution": {"type": "ring", …}` of a spec."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.distribution import MAX_NODES, Distribution, NodeCountDistribution, narrow
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.frameworks.json_schema import COUNT, configuration_schema

MAX_MEMBERS = 64
DIRECTIONS = ("forward", "backward")


@dataclass(frozen=True)
class RingConfiguration(NodeCountDistribution):
    """`member_count` counts the members on all nodes."""

    member_count: int = 2
    direction: str = "forward"
    node_count: int = 1
    type: str = "ring"

    def check(self, requested: int | None) -> None:
        super().check(requested)
        if self.node_count > self.member_count:
            raise SpecError(
                "distribution.node_count", f"must be at most {self.member_count}, the number of members"
            )


JSON_SCHEMA = configuration_schema(
    "ring",
    {"member_count": COUNT, "direction": {"type": "string", "enum": list(DIRECTIONS)}, "node_count": COUNT},
)


def read(fields: Fields) -> RingConfiguration:
    direction = fields.text("direction", "forward")
    if direction not in DIRECTIONS:
        raise SpecError("distribution.direction", "must be 'forward' or 'backward'")
    return RingConfiguration(
        member_count=fields.integer("member_count", 2, least=1, most=MAX_MEMBERS),
        direction=direction,
        node_count=fields.integer("node_count", 1, least=1, most=MAX_NODES),
    )


def summary(distribution: Distribution) -> str:
    return f"×{narrow(distribution, RingConfiguration).member_count}"
