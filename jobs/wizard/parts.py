"""The frozen parts of a RunSpec that the steps of the wizard yield."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainhub_launch.data.outputs import OutputPlace
from trainhub_launch.distribution import Distribution
from trainhub_launch.spec import Checkpoints, DataInput, EnvironmentRef, Limits, Source, Variable


@dataclass(frozen=True)
class SourcePart:
    """The source, what is started from it, and the data that it reads. `source` is None while it is not
    chosen."""

    source: Source | None = None
    script: str = ""
    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    inputs: Mapping[str, DataInput] = field(default_factory=dict)


@dataclass(frozen=True)
class DistributionPart:
    """The distribution. `node_count` is set only if the distribution has no such field itself."""

    distribution: Distribution | None = None
    node_count: int | None = None


@dataclass(frozen=True)
class ResourcesPart:
    """Where the run goes. `cluster` "": the default cluster. `all_gpus`: in place of a number of GPUs."""

    cluster: str = ""
    gpus_per_node: int = 0
    limits: Limits = field(default_factory=Limits)
    priority: int = 0
    memory: int | None = None
    cpus: float | None = None
    disk: int | None = None
    checkpoint: Checkpoints = field(default_factory=Checkpoints)
    outputs: OutputPlace | None = None
    all_gpus: bool = False


@dataclass(frozen=True)
class EnvironmentPart:
    environment: EnvironmentRef = field(default_factory=EnvironmentRef)
    variables: Mapping[str, Variable] = field(default_factory=dict)
    experiment: str = "default"
    display_name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parts:
    source: SourcePart = SourcePart()
    distribution: DistributionPart = DistributionPart()
    resources: ResourcesPart = ResourcesPart()
    environment: EnvironmentPart = EnvironmentPart()
