"""Where ranks of the node's tests run: on the node itself, or in a container there.

Tests with the mark `in_containers` run once for each: in podman's, or in those of the engines that the mark
names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.node.containers.images import PrivateEngine
from trainhub_launch.order import EnvironmentSpec

SYSTEM = EnvironmentSpec(name="system", version="", kind="system")
NODE = "node"


@dataclass(frozen=True)
class Place:
    """`variables`: those of the agent. `engine`: its TRAINHUB_NODE_CONTAINERS. `before`: the beginning of the
    agent's command, where the engine needs one."""

    environment: EnvironmentSpec = SYSTEM
    engine: str = "off"
    variables: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[str] = ()


def in_containers_of(engine: PrivateEngine) -> Place:
    return Place(engine.environment(), engine.name, engine.variables, engine.before)


current = Place()
