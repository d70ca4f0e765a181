"""RunSpec: what the user wants (field names are those of Azure ML where one exists)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainhub_launch.distribution import (
    MAX_NODES,
    Distribution,
    MpiConfiguration,
    PyTorchConfiguration,
    TensorflowConfiguration,
    check_total,
    read_distribution,
)
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields, check_text

__all__ = [
    "Distribution",
    "EnvironmentRef",
    "ExampleSource",
    "Limits",
    "MpiConfiguration",
    "PyTorchConfiguration",
    "Resources",
    "RunSpec",
    "SnapshotSource",
    "Source",
    "TensorflowConfiguration",
    "Variable",
]

VERSION = 1
LOWEST_PRIORITY, HIGHEST_PRIORITY = -10, 10
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
EXPERIMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,127}\Z")


@dataclass(frozen=True)
class SnapshotSource:
    """A folder frozen on the hub; `id` is the SHA-256 of its canonical zip."""

    id: str
    type: str = "snapshot"


@dataclass(frozen=True)
class ExampleSource:
    """One of the built-in examples; the hub turns it into a snapshot on submit."""

    name: str
    type: str = "example"


Source = SnapshotSource | ExampleSource


@dataclass(frozen=True)
class Resources:
    """`gpus_per_node` 0 = a CPU run; `node_count` None = what the distribution says."""

    cluster: str = "local"
    node_count: int | None = None
    gpus_per_node: int = 0


@dataclass(frozen=True)
class EnvironmentRef:
    """`system` (with `version` = an interpreter the node reports, or "") or a named environment."""

    name: str = "system"
    version: str = ""


@dataclass(frozen=True)
class Variable:
    """A plain value, or the name of a secret; exactly one of the two is set."""

    value: str | None = None
    secret: str | None = None


@dataclass(frozen=True)
class Limits:
    timeout_s: int | None = None
    grace_s: int = 10
    retries: int = 0


@dataclass(frozen=True)
class RunSpec:
    source: Source
    experiment: str = "default"
    display_name: str = ""
    script: str = ""
    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    distribution: Distribution = None
    resources: Resources = Resources()
    environment: EnvironmentRef = EnvironmentRef()
    environment_variables: Mapping[str, Variable] = field(default_factory=dict)
    limits: Limits = Limits()
    priority: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def node_count(self) -> int:
        """Nodes the run needs: the distribution rules, then the resources, then one."""
        if isinstance(self.distribution, PyTorchConfiguration | MpiConfiguration):
            return self.distribution.node_count
        if isinstance(self.distribution, TensorflowConfiguration):
            return self.resources.node_count or self.distribution.worker_count
        return self.resources.node_count or 1

    def with_source(self, source: Source) -> RunSpec:
        return replace(self, source=source)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "experiment": self.experiment,
            "display_name": self.display_name,
            "source": _source_to_json(self.source),
            "script": self.script,
            "arguments": list(self.arguments),
            "command": list(self.command),
            "distribution": None if self.distribution is None else dict(vars(self.distribution)),
            "resources": dict(vars(self.resources)),
            "environment": dict(vars(self.environment)),
            "environment_variables": {
                name: variable.value if variable.secret is None else {"secret": variable.secret}
                for name, variable in self.environment_variables.items()
            },
            "limits": dict(vars(self.limits)),
            "priority": self.priority,
            "tags": dict(self.tags),
        }

    @classmethod
    def from_json(cls, data: Any) -> RunSpec:
        """Read a spec written by a person or a client; raises SpecError naming the field."""
        fields = Fields(data)
        fields.integer("version", VERSION, least=1, most=VERSION)
        experiment = fields.text("experiment", "default", required=True)
        if not EXPERIMENT_NAME.match(experiment):
            raise SpecError(
                "experiment", "use letters, digits, space, '.', '_' and '-', starting with a letter or digit"
            )
        spec = cls(
            source=_read_source(fields),
            experiment=experiment,
            display_name=fields.text("display_name", longest=200),
            script=fields.text("script").strip(),
            arguments=fields.strings("arguments"),
            command=fields.strings("command"),
            distribution=read_distribution(fields),
            resources=_read_resources(fields.nested("resources")),
            environment=_read_environment(fields.nested("environment")),
            environment_variables=_read_variables(fields),
            limits=_read_limits(fields.nested("limits")),
            priority=fields.integer("priority", 0, least=LOWEST_PRIORITY, most=HIGHEST_PRIORITY),
            tags=_read_tags(fields),
        )
        fields.finish()
        _check_whole(spec)
        return spec


def _source_to_json(source: Source) -> dict[str, Any]:
    return dict(vars(source))


def _read_source(fields: Fields) -> Source:
    source = fields.nested("source")
    kind = source.text("type", required=True)
    out: Source
    if kind == "snapshot":
        out = SnapshotSource(id=source.text("id", required=True))
    elif kind == "example":
        out = ExampleSource(name=source.text("name", required=True))
    else:
        raise SpecError("source.type", f"{kind!r} is not a kind of source; use 'snapshot' or 'example'")
    source.finish()
    return out


def _read_resources(part: Fields) -> Resources:
    out = Resources(
        cluster=part.text("cluster", "local", required=True),
        node_count=part.optional_integer("node_count", least=1, most=MAX_NODES),
        gpus_per_node=part.integer("gpus_per_node", 0, least=0, most=64),
    )
    part.finish()
    return out


def _read_environment(part: Fields) -> EnvironmentRef:
    out = EnvironmentRef(name=part.text("name", "system", required=True), version=part.text("version"))
    part.finish()
    return out


def _read_variables(fields: Fields) -> dict[str, Variable]:
    raw = fields.raw("environment_variables", {})
    if not isinstance(raw, Mapping):
        raise SpecError("environment_variables", "must be a JSON object of NAME: value")
    out: dict[str, Variable] = {}
    for name, value in raw.items():
        path = f"environment_variables.{name}"
        if not isinstance(name, str) or not VARIABLE_NAME.match(name):
            raise SpecError(
                path, "is not a variable name; use letters, digits and '_', not starting with a digit"
            )
        if isinstance(value, Mapping):
            part = Fields(value, path)
            out[name] = Variable(secret=part.text("secret", required=True))
            part.finish()
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            check_text(path, str(value))
            out[name] = Variable(value=str(value))
        else:
            raise SpecError(path, 'must be a string, or {"secret": "its name"}')
    return out


def _read_limits(part: Fields) -> Limits:
    out = Limits(
        timeout_s=part.optional_integer("timeout_s", least=1, most=366 * 86400),
        grace_s=part.integer("grace_s", 10, least=0, most=3600),
        retries=part.integer("retries", 0, least=0, most=100),
    )
    part.finish()
    return out


def _read_tags(fields: Fields) -> dict[str, str]:
    raw = fields.raw("tags", {})
    if not isinstance(raw, Mapping) or not all(
        isinstance(k, str) and isinstance(v, str) for k, v in raw.items()
    ):
        raise SpecError("tags", "must be a JSON object of strings")
    for name, value in raw.items():
        check_text(f"tags.{name}", name + value)
    return dict(raw)


def _check_whole(spec: RunSpec) -> None:
    """Rules between fields that no placement can change."""
    if spec.command and (spec.script or spec.arguments):
        raise SpecError("command", "give either a script with arguments, or a command, not both")
    if not spec.command and not spec.script:
        raise SpecError("script", "name the script to run (or give a command)")
    distribution = spec.distribution
    check_total(distribution)
    if isinstance(distribution, PyTorchConfiguration | MpiConfiguration):
        if spec.resources.node_count not in (None, distribution.node_count):
            raise SpecError(
                "resources.node_count",
                f"is {spec.resources.node_count}, but the distribution asks for {distribution.node_count} "
                "node(s); "
                "leave it out or make both the same",
            )
    elif distribution is None and (spec.resources.node_count or 1) > 1:
        raise SpecError(
            "resources.node_count", "a run on several nodes needs a distribution (pytorch, mpi or tensorflow)"
        )
